package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/internal/service/token"
)

func tokenVerb() verb {
	return verb{
		name: "token", brief: "make, list and revoke tokens", synopsis: "add --agent NAME | add --operator NAME | list | revoke ID",
		detail: `Keeps the tokens with which agents and operators use the service. A token is one agent's
or one operator's, and its text is printed once, by add: the estate has its SHA-256 alone.
An agent's token never clears, restores or acts for another. A revoked token is refused
from the next request on; the server need not be started again.

  --estate DIR   the estate; else as 'stile' finds it
  --json         print JSON`,
		example: "stiled token add --agent ada > ada.token\nstiled token list\nstiled token revoke 3f2a90c1d4e5",
		run:     runToken,
	}
}

// estatePath finds the estate.
func estatePath(flag string) (string, error) {
	e, err := estate.Open(estate.Options{Flag: flag, Environment: os.Getenv("STILE_ESTATE")})
	if err != nil {
		return "", hint(err, "stile init --estate DIR makes one")
	}
	return e.Path, e.Close()
}

func runToken(v *verb, args []string) error {
	if len(args) == 0 {
		return hint(errors.New("add, list or revoke"), "stiled token --help")
	}
	sub := args[0]
	f := flags(v.name)
	dir, asJSON := f.String("estate", "", ""), f.Bool("json", false, "")
	agent, operator := f.String("agent", "", ""), f.String("operator", "", "")
	operands := 0
	rest := args[1:]
	if sub == "revoke" {
		operands = 1
	}
	if sub == "--help" || sub == "-h" {
		rest = []string{"-h"}
	}
	if err := v.parse(f, rest, operands); err != nil {
		return err
	}
	path, err := estatePath(*dir)
	if err != nil {
		return err
	}
	tokens := token.In(path)
	switch sub {
	case "add":
		return addToken(tokens, *agent, *operator, *asJSON)
	case "list":
		return listTokens(tokens, *asJSON)
	case "revoke":
		if err := tokens.Revoke(f.Arg(0)); err != nil {
			return hint(fmt.Errorf("%s: %w", display.Text(f.Arg(0)), err), "stiled token list")
		}
		if *asJSON {
			return printJSON(map[string]string{"revoked": f.Arg(0)})
		}
		_, err := fmt.Println("revoked")
		return err
	}
	return hint(fmt.Errorf("unknown: token %s", display.Text(sub)), "stiled token --help")
}

func addToken(tokens token.Dir, agent, operator string, asJSON bool) error {
	role, name := grant.RoleAgent, agent
	if operator != "" {
		role, name = grant.RoleOperator, operator
	}
	if (agent == "") == (operator == "") {
		return hint(errors.New("a token is one agent's or one operator's"), "stiled token add --agent NAME")
	}
	t, text, err := tokens.Add(role, name)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(struct {
			tokenJSON
			Token string `json:"token"`
		}{jsonOf(t), text})
	}
	fmt.Fprintf(os.Stderr, "token %s of %s %s; it is shown this once:\n", t.ID, role, display.Text(name))
	_, err = fmt.Println(text)
	return err
}

type tokenJSON struct {
	ID      string     `json:"id"`
	Role    grant.Role `json:"role"`
	Name    string     `json:"name"`
	Created grant.Time `json:"created"`
}

func jsonOf(t token.Token) tokenJSON { return tokenJSON{t.ID, t.Role, t.Name, t.Created} }

func listTokens(tokens token.Dir, asJSON bool) error {
	list, err := tokens.List()
	if asJSON {
		out := []tokenJSON{}
		for _, t := range list {
			out = append(out, jsonOf(t))
		}
		return errors.Join(err, printJSON(map[string][]tokenJSON{"tokens": out}))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tROLE\tNAME\tCREATED")
	for _, t := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.ID, t.Role, display.Text(t.Name), t.Created.Std().Format(time.RFC3339))
	}
	return errors.Join(err, w.Flush())
}

func printJSON(v any) error {
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
