package placement

import (
	"encoding/json"
	"time"
)

// Milliseconds is a duration that records write in whole milliseconds, rounded up so that none becomes "not known".
// The names of such fields end in Ms.
type Milliseconds time.Duration

// MarshalJSON writes whole milliseconds.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	return json.Marshal((time.Duration(m) + time.Millisecond - 1) / time.Millisecond)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (m *Milliseconds) UnmarshalJSON(text []byte) error {
	var whole int64
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	*m = Milliseconds(time.Duration(whole) * time.Millisecond)
	return nil
}
