package grant

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPlantedGrantBugs: the explorer finds each bug, and says what it broke.
func TestPlantedGrantBugs(t *testing.T) {
	for _, c := range []struct {
		name string
		x    explorer
		want string
	}{
		{"assert-only landing", explorer{assertOnly: true}, "I3"},
		{"no nonce", explorer{sameAgent: true, nonceless: true}, "two sessions hold grant"},
		{"reissued remainder", explorer{bug: planted{reissue: true}}, "I5"},
		{"release without a landing", explorer{bug: planted{releaseUnlanded: true}}, "I6"},
		{"clear without burning", explorer{unverified: true, bug: planted{clearKeepsNumber: true}}, "its number still passes"},
		{"takeover past the queue", explorer{bug: planted{ignoreQueue: true}}, "I11"},
		{"expiry that falls", explorer{bug: planted{expiryFalls: true}}, "I7"},
		{"landing by the number alone", explorer{bug: planted{landLate: true}}, "land atlas"},
		{"silence ended by an acquire", explorer{bug: planted{silentForgets: true}}, "I9"},
		{"missed offers not recorded", explorer{bug: planted{plainMisses: true}}, "I11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := c.x
			x.losses = 1
			x.run()
			if !strings.Contains(x.found, c.want) || x.found == "" {
				t.Errorf("after %d situations it found %q, want %q", len(x.seen), x.found, c.want)
			}
			t.Logf("%d situations: %s", len(x.seen), x.found)
		})
	}
}

// TestPlaysFindPlantedBugs: so do the random plays, those that one container can show.
func TestPlaysFindPlantedBugs(t *testing.T) {
	for name, bug := range map[string]planted{
		"reissued remainder":          {reissue: true},
		"release without a landing":   {releaseUnlanded: true},
		"clear without burning":       {clearKeepsNumber: true},
		"takeover past the queue":     {ignoreQueue: true},
		"expiry that falls":           {expiryFalls: true},
		"landing by the number alone": {landLate: true},
		"silence ended by an acquire": {silentForgets: true},
		"missed offers not recorded":  {plainMisses: true},
	} {
		t.Run(name, func(t *testing.T) {
			play := rapid.Custom(func(rt *rapid.T) string {
				e := newEstate(bug)
				for range 40 {
					if err := e.step(rt); err != nil {
						return err.Error()
					}
				}
				return ""
			})
			for seed := range 3000 {
				if found := play.Example(seed); found != "" {
					t.Logf("play %d: %s", seed, found)
					return
				}
			}
			t.Error("3,000 plays found nothing")
		})
	}
}
