//go:build !linux

package seam

import "time"

func nap(d time.Duration) { time.Sleep(d) }
