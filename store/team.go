package store

import "time"

// Team is a tenant.
type Team struct {
	ID        string    `json:"id"` // UUID
	Name      string    `json:"name"`
	Default   bool      `json:"default"`
	CreatedAt time.Time `json:"createdAt"`
}

// Key is an API key. Only the hash of the key is stored.
type Key struct {
	ID        string    `json:"id"` // UUID
	TeamID    string    `json:"teamID"`
	Name      string    `json:"name"`
	Hash      string    `json:"hash"` // lowercase hex SHA-256 of the whole key
	Mask      string    `json:"mask"` // for listings, for example e2b_12…cdef
	CreatedAt time.Time `json:"createdAt"`
}
