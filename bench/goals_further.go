package main

// furtherGoals are those that the parts of stile have set themselves besides.
func furtherGoals(b *book) []goal {
	all := []goal{
		{"handoff with records, against blocking flock(2)", 1.3, "×", false, ratioOf("handoff", "", "kernlock+record", "flock-go", "p50")},
		{"processor time of a 5 s wait", 2, " ms", false, valueOf("wait", "", "kernlock+record", "cpu")},
		{"8 contenders, hold 0: rate against one alone", 0.9, "", true, valueOf("contend", eightBusy, "kernlock", "of alone")},
		{"8 contenders, hold 1 ms: rate against one alone", 0.9, "", true, valueOf("contend", eightHeld, "kernlock", "of alone")},
		{"8 contenders, hold 0: slowest against fastest", 0.85, "", true, valueOf("contend", eightBusy, "kernlock", "slowest/fastest")},
		{"8 contenders, hold 1 ms: slowest against fastest", 0.85, "", true, valueOf("contend", eightHeld, "kernlock", "slowest/fastest")},
		{"next holder after SIGKILL, one waiter, median", 1000, " µs", false, valueOf("kill", "", "kernlock+record", "p50")},
		{"lock file: next holder after SIGKILL, one waiter, median", 5000, " µs", false, valueOf("file-kill", "", "lockfile", "p50")},
		{"a line behind 1,000,000, against the first", 1.1, "×", false, func(b *book) float64 {
			return b.value("lines", "1 writing, 1000000 lines before, "+onDisk, "record.Lines", "time a line") /
				b.value("lines", aloneLines+onDisk, "record.Lines", "time a line")
		}},
		{"one command on a grant, synced, at p99", 10, " ms", false, valueOf("grant-command", onDisk, "grant", "p99")},
		{"status of 1,000 containers of 1,000 revisions on disk", 200, " ms", false,
			valueOf("grant-status", "1000 containers of 1000 revisions, disk", "grant", "time")},
		{"landing of 1 KiB on disk, against a heartbeat", 1.5, "×", false, func(b *book) float64 {
			return b.value("register-land", "1 KiB, disk", "grant", "p50") / b.value("register-land", "a heartbeat, disk", "grant", "p50")
		}},
		{"landing of 1 GiB on disk, against sha256sum, cp and sync", 2, "×", false,
			ratioOf("register-large", "1024 MiB, disk", "grant", "sha256sum, cp, sync", "time")},
		{"log of 10,000 landings", 300, " ms", false, valueOf("register-log", "10000 landings, tmpfs", "grant", "time")},
		{"resident memory of a waiting stile run", 12, " MB", false, valueOf("wait", "", "stile run", "resident")},
	}
	for _, p := range b.places() {
		all = append(all,
			goal{"lock file cycle among 1,000 other files, " + p + ", against C", 1.1, "×", false, ratioOf("file-cycle", p+", 1000 other files", "lockfile", "c-lockfile", "time")},
			goal{"document of 8 writers, " + p + ": rate against the best peer", 8, "×", true, rateOfBest("document", p, "record.Append", "rate", documentPeers)},
			goal{"the same under a lock file, " + p, 8, "×", true, rateOfBest("document", p, "record.Append+lockfile", "rate", documentPeers)},
			goal{"append to 100,000 records, " + p + ", against C", 1.3, "×", false, ratioOf("append", "100000 records, "+p, "record.Append", "c-copy", "time")},
			goal{"append with Sync to 100,000 records, " + p + ", against C with fsync", 1.3, "×", false, ratioOf("append", "100000 records, "+p, "record.Append+sync", "c-copy+sync", "time")},
		)
	}
	for _, p := range []string{onDisk, inMemory} {
		all = append(all, goal{"dispatch open at 10,000 records, " + p + ", against stile run and C together", 1.5, "×", false,
			ratioOf("dispatch", p, "stile dispatch open", "stile run + c-dispatch", "median")})
	}
	return all
}
