package record

func childUpdate([]string) error { return nil }
func childKilled([]string) error { return nil }
