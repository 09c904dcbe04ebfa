package main

import (
	"errors"

	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/register"
)

// registerFailures are the errors of registers. Those with exitBadFile, exitHeld and exitLost are refusals.
func registerFailures() []knownFailure {
	return []knownFailure{
		{local.ErrObjectsBusy, exitHeld, "objects_busy", "wait until that has ended, and give the same command again; -w waits longer"},
		{register.ErrName, exitBadFile, "bad_artifact_name", "nothing was changed; rename it: the same name must mean the same file on every system"},
		{register.ErrTarget, exitBadFile, "bad_link", "nothing was changed; a link that lands is relative, and leads to within the tree"},
		{register.ErrLink, exitBadFile, "link", "nothing was changed; with --links a link lands as a link"},
		{register.ErrOdd, exitBadFile, "not_a_regular_file", "nothing was changed; only files, folders and links can land"},
		{register.ErrIsFolder, exitBadFile, "is_a_folder", "nothing was changed; --dir lands what is in a folder"},
		{register.ErrChanged, exitBadFile, "file_changed", "nothing landed, and the grant stays: land again when nobody writes to it"},
		{register.ErrNotEmpty, exitBadFile, "not_empty", "nothing was changed; --replace replaces a folder and all that is in it"},
		{register.ErrNotReplaced, exitIO, "not_replaced", "what was there is as it was"},
		{register.ErrTellsResult, exitBadFile, "tells_result", "nothing was commissioned; take the result out of what the deriver is given"},
		{register.ErrDamaged, exitBadFile, "damaged_object", "landing the same bytes again mends it"},
		{register.ErrMissing, exitIO, "missing_object", "landing the same bytes again brings it back"},
		{register.ErrManifest, exitBadFile, "bad_manifest", "nothing was changed; 'stile register show NAME --manifest' prints one"},
		{register.ErrGap, exitBadFile, "history_gap", "pages were lost; what landed before the restore is not known here"},
		{register.ErrNoLanding, exitNoFolder, "no_such_landing", "'stile register log NAME' lists those that there are"},
		{register.ErrNotKept, exitNoFolder, "no_such_refused_landing", "'stile register refused NAME --all' lists those that there are"},
		{register.ErrAmbiguous, exitUsage, "ambiguous", "write more of its name"},
		{register.ErrReason, exitUsage, "reason_required", "--reason WHY: it stands beside what is discarded"},
		{register.ErrRecord, exitNoFolder, "no_such_record", "'stile register show NAME' lists what has landed"},
		{register.ErrNothing, exitUsage, "nothing_to_land", "--empty REASON lands that there is nothing"},
	}
}

// classifyRegister names errors of registers; nil for others.
func classifyRegister(err error) *failure {
	for _, k := range registerFailures() {
		if errors.Is(err, k.err) {
			return &failure{exit: k.exit, code: k.code, hint: k.hint, err: err}
		}
	}
	return nil
}
