package grant

// Badge is a container's state in one word.
type Badge string

// The badges, as prompts and dashboards show them.
const (
	BadgeFree         Badge = "free"
	BadgeHeld         Badge = "held"
	BadgeHolderSilent Badge = "holder-silent"
	BadgeCaution      Badge = "caution"
)

// BadgeOf is the badge that a reader sees, by the reader's own clock: a page does not change when a grant
// expires. Caution is for a new lead's grant after a silence, until it has landed and released.
func BadgeOf(p *Page, now Time) Badge {
	switch {
	case p.State == StateCleared, p.State == StateHeld && now >= p.Expiry:
		return BadgeHolderSilent
	case p.Silent.On:
		return BadgeCaution
	case p.State == StateHeld:
		return BadgeHeld
	}
	return BadgeFree
}
