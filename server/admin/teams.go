package admin

import (
	"net/http"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/isthmus/isthmus/store"
)

// teamName is the form of a team's name.
var teamName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$`)

// NewTeam asks for a team.
type NewTeam struct {
	Name string `json:"name"` // 1 to 64 letters, digits, blanks, . _ -
}

func (a *Admin) listTeams(w http.ResponseWriter, r *http.Request) {
	teams, err := a.config.Store.Teams.List(r.Context())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, orEmpty(teams))
}

func (a *Admin) createTeam(w http.ResponseWriter, r *http.Request) {
	var ask NewTeam
	if !read(w, r, &ask) {
		return
	}
	if !teamName.MatchString(ask.Name) {
		refuse(w, http.StatusBadRequest, "name must be 1 to 64 letters, digits, blanks and . _ -, and start with a letter or digit")
		return
	}
	team := store.Team{ID: uuid.NewString(), Name: ask.Name, CreatedAt: time.Now().UTC()}
	if err := a.config.Store.Teams.Add(r.Context(), team); err != nil {
		a.fail(w, r, err)
		return
	}
	answer(w, http.StatusCreated, team)
}

// orEmpty makes an empty list [] in JSON, not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
