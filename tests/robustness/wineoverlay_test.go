//go:build linux

package robustness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Go deletes files on Windows by an information class that Wine 8 does not have. Go falls back to the old
// class when Windows says "invalid", "invalid parameter" or "not supported"; Wine says "not implemented",
// which Go takes for a failure, so that os.Remove, and with it every t.TempDir, fails. The test binaries
// are therefore built with a copy of one file of the toolchain in which that answer falls back as well.
// Nothing of the toolchain itself is changed, and nothing that ships is built this way.
const (
	overlaidFile = "src/internal/syscall/windows/at_windows.go"
	overlayOld   = "case STATUS_INVALID_INFO_CLASS,"
	overlayNew   = "case NTStatus(0xC0000002), STATUS_INVALID_INFO_CLASS,"
	overlayNear  = "STATUS_NOT_SUPPORTED:" // ends the same case
)

// patchDeleteat adds "not implemented" to the answers on which Deleteat falls back.
func patchDeleteat(source []byte) ([]byte, error) {
	if n := bytes.Count(source, []byte(overlayOld)); n != 1 {
		return nil, fmt.Errorf("%s holds %q %d times, want once: this toolchain needs another patch (or none: see whether Wine runs without it)", overlaidFile, overlayOld, n)
	}
	before, after, _ := bytes.Cut(source, []byte(overlayOld))
	if fn := before[bytes.LastIndex(before, []byte("\nfunc "))+1:]; !bytes.HasPrefix(fn, []byte("func Deleteat(")) {
		return nil, fmt.Errorf("%s has %q outside Deleteat: this toolchain needs another patch", overlaidFile, overlayOld)
	}
	body, _, ok := bytes.Cut(after, []byte("return deleteatFallback("))
	if !ok || !bytes.Contains(body, []byte(overlayNear)) || bytes.Contains(body, []byte("default:")) {
		return nil, fmt.Errorf("%s: the case with %q no longer falls back: this toolchain needs another patch", overlaidFile, overlayOld)
	}
	return bytes.Join([][]byte{before, after}, []byte(overlayNew)), nil
}

// writeOverlay writes what go test -overlay reads, for the toolchain in goroot, and returns its name.
func writeOverlay(goroot, dir string) (string, error) {
	original := filepath.Join(goroot, filepath.FromSlash(overlaidFile))
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("read the toolchain: %w", err)
	}
	patched, err := patchDeleteat(source)
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, "at_windows.go")
	if err := os.WriteFile(replacement, patched, 0o666); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o666)
}

func TestPatchDeleteat(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(goEnv(t, "GOROOT"), filepath.FromSlash(overlaidFile)))
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patchDeleteat(source)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(string(source), overlayOld, overlayNew, 1); string(patched) != want || want == string(source) {
		t.Error("the patch does not change the one line that it should")
	}
	for name, other := range map[string]string{
		"no such case":      strings.Replace(string(source), overlayOld, "case STATUS_OTHER,", 1),
		"two of them":       string(source) + "\n// " + overlayOld,
		"another function":  strings.Replace(string(source), "func Deleteat(", "func Unlinkat(", 1),
		"no fallback":       strings.ReplaceAll(string(source), "return deleteatFallback(", "return deleteNow("),
		"no case after all": strings.Replace(string(source), overlayNear, "STATUS_OTHER:", 1),
		"patched already":   string(patched) + overlayOld,
		"an empty file":     "",
	} {
		if _, err := patchDeleteat([]byte(other)); err == nil {
			t.Errorf("%s: patched without a word", name)
		} else if !strings.Contains(err.Error(), "this toolchain needs another patch") {
			t.Errorf("%s: the error does not say what to do: %v", name, err)
		}
	}
}
