package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/stile-lock/stile/grant/http/direct"
	"github.com/stile-lock/stile/grant/http/pipe"
)

// What a client finds in its environment.
const (
	serverVariable    = "STILE_SERVER"
	tokenVariable     = "STILE_TOKEN"
	tokenFileVariable = "STILE_TOKEN_FILE" //nolint:gosec // a name, and no token
)

func clientVerb() verb {
	return verb{
		name: "client", brief: "carry the tool's requests to a service", synopsis: "",
		detail: `What 'stile grant' starts when STILE_SERVER names a service. It reads requests from its
standard input and writes the answers to its standard output, in frames that are the
two programs' own; people have no use for it.

The token is STILE_TOKEN, or what the file that STILE_TOKEN_FILE names holds. Without
one the service must trust loopback (stiled serve --trust-loopback).`,
		example: "STILE_SERVER=http://127.0.0.1:7421 STILE_TOKEN_FILE=~/ada.token stile grant status",
		run:     runClient,
	}
}

func runClient(v *verb, args []string) error {
	if err := v.parse(flags(v.name), args, 0); err != nil {
		return err
	}
	server := os.Getenv(serverVariable)
	if server == "" {
		return hint(errors.New("no service is named"), "STILE_SERVER=http://127.0.0.1:7421")
	}
	token, err := clientToken()
	if err != nil {
		return err
	}
	t, err := direct.New(server, token)
	if err != nil {
		return hint(fmt.Errorf("%s: %w", serverVariable, err), "STILE_SERVER=http://127.0.0.1:7421")
	}
	defer t.Close()
	return pipe.Serve(context.Background(), os.Stdin, os.Stdout, t)
}

// clientToken finds the token. What is wrong with it is never quoted.
func clientToken() (string, error) {
	if text := os.Getenv(tokenVariable); text != "" {
		return strings.TrimSpace(text), nil
	}
	path := os.Getenv(tokenFileVariable)
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if len(data) > 4096 {
		return "", errors.New("read the token: the file holds more than one")
	}
	return strings.TrimSpace(string(data)), nil
}
