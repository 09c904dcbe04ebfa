package main

import (
	"fmt"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
)

func initVerb() verb {
	return verb{
		name:     "init",
		brief:    "make an estate: the folder of dispatches, boards and containers",
		synopsis: "[--estate DIR] [--json]",
		detail: `Makes an estate and says where. Inside a git repository it is made in the git
common directory, so that all worktrees share it and nothing of it is committed;
elsewhere it is .stile in the current folder. --estate, or STILE_ESTATE, names
another place. What is there already stays as it is, so init may be repeated.

The commands that use an estate look for it in this order: --estate, STILE_ESTATE,
the nearest folder upwards that holds .stile, the git common directory. When both
of the last are there, they refuse until one is named. 'stile status' says which
one is used, and why.

Exit code: 0; 1 usage, or it could not be made; 2 refused: nothing was changed.`,
		examples: `stile init
stile init --estate /srv/team/estate`,
		options: func() []option { return new(initFlags).options() },
		run:     cmdInit,
	}
}

type initFlags struct {
	estate string
	json   bool
}

func (f *initFlags) options() []option {
	return []option{estateOption(&f.estate), jsonOption(&f.json)}
}

// initResult is the JSON of an init.
type initResult struct {
	estateInUse
	Made bool `json:"made"`
}

func cmdInit(args []string) int {
	var f initFlags
	p, err := parse(args, f.options(), false)
	if err == nil && len(p.operands) > 0 {
		err = usageHint("stile init --estate "+display.Text(p.operands[0]), "init takes no operand")
	}
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	place, made, err := estate.Init(estateOptions(f.estate, ""))
	if err != nil {
		return fail(err, f.json)
	}
	if f.json {
		printJSON(stdout, &initResult{*estateInUseOf(place), made})
		return 0
	}
	word := "made"
	if !made {
		word = "there already:"
	}
	fmt.Fprintf(stdout, "%s %s (%s)\n", word, display.Text(place.Path), place.Reason())
	return 0
}
