//go:build !unix && !windows

package main

func classifySystem(error) *failure { return nil }
