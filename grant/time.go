package grant

import (
	"errors"
	"strconv"
	"time"
)

// Time is a moment in microseconds since 1970, UTC. The zero Time is none: null in JSON.
type Time int64

// maxTime is the last moment of the year 9999, the last that RFC 3339 can write.
const maxTime = Time(253402300799_999999)

const timeLayout = "2006-01-02T15:04:05.000000Z"

// TimeOf is t cut to whole microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Std is t for package time, in UTC; the zero time.Time for none.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// Add returns t+d, held within the years that can be written.
func (t Time) Add(d time.Duration) Time {
	us := Time(d / time.Microsecond)
	switch {
	case us > 0 && t > maxTime-us:
		return maxTime
	case us < 0 && t < 1-us:
		return 1
	}
	return t + us
}

// Sub returns t-u.
func (t Time) Sub(u Time) time.Duration {
	const most = Time(1<<63-1) / 1000
	switch d := t - u; { // both lie within 0 and the year 9999: no overflow
	case d > most:
		return 1<<63 - 1
	case d < -most:
		return -1 << 63
	default:
		return time.Duration(d) * time.Microsecond
	}
}

func (t Time) String() string {
	if t == 0 {
		return "never"
	}
	return t.Std().Format(timeLayout)
}

// MarshalJSON writes RFC 3339 in UTC with six digits, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	if !t.valid() {
		return nil, errors.New("time is not of the years 1970 to 9999: " + strconv.FormatInt(int64(t), 10))
	}
	return t.Std().AppendFormat(nil, `"`+timeLayout+`"`), nil
}

// UnmarshalJSON reads what MarshalJSON writes; other spellings are found by encoding again.
func (t *Time) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*t = 0
		return nil
	}
	s, err := time.Parse(`"`+timeLayout+`"`, string(text))
	if err != nil {
		return errors.New("not a time in UTC with six digits")
	}
	if *t = TimeOf(s); !t.valid() {
		return errors.New("time is not of the years 1970 to 9999")
	}
	return nil
}

func (t Time) valid() bool { return t > 0 && t <= maxTime }
