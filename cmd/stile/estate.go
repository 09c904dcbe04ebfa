package main

import (
	"errors"
	"os"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
)

// estateVariable names the estate when no flag does.
const estateVariable = "STILE_ESTATE"

func estateOption(p *string) option {
	return option{names: "estate", arg: "DIR", help: "the estate to use, instead of the one in reach", words: "FILE", set: func(v string) error {
		if v == "" {
			return usagef("--estate needs a folder")
		}
		*p = v
		return nil
	}}
}

// estateOptions are where an estate is searched from dir: "" is the working folder.
func estateOptions(flag, dir string) estate.Options {
	return estate.Options{Flag: flag, Environment: os.Getenv(estateVariable), Dir: dir}
}

// estateInUse is the JSON of the estate that commands begun in a folder would use.
type estateInUse struct {
	Path   string `json:"path"`
	Found  string `json:"found"`
	Reason string `json:"reason"`
}

func estateInUseOf(p estate.Place) *estateInUse {
	return &estateInUse{Path: p.Path, Found: string(p.How), Reason: p.Reason()}
}

// lookForEstate says which estate would be used in dir, or why the one in reach would not be. Both are nil
// when there is none.
func lookForEstate(flag, dir string) (*estateInUse, *failure) {
	e, err := estate.Open(estateOptions(flag, dir))
	switch {
	case errors.Is(err, estate.ErrNone):
		return nil, nil
	case err != nil:
		return nil, classify(err)
	}
	if err := e.Close(); err != nil {
		return nil, classify(err)
	}
	return estateInUseOf(e.Place), nil
}

// estateText says the same for people.
func estateText(in *estateInUse, f *failure) string {
	switch {
	case f != nil:
		return "cannot be used: " + display.Text(f.Error())
	case in == nil:
		return "none in reach"
	}
	return display.Text(in.Path) + " (" + in.Reason + ")"
}
