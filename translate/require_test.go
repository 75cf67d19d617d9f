package translate

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate/placement"
)

func stated(t *testing.T, line string) placement.Requirements {
	t.Helper()
	r, err := placement.Parse(placement.Policy, line, nil)
	require.NoError(t, err)
	return r
}

func TestRequire(t *testing.T) {
	rules := &Rules{
		Classes:   placement.Classes{"ci": stated(t, "rank=startup; cpu=4")},
		Keys:      map[string]placement.Requirements{"id-1": stated(t, "isolation=gvisor"), "named": stated(t, "pools=a,b")},
		Templates: map[string]placement.Requirements{"desktop": stated(t, "memory=4GiB")},
	}
	cases := []struct {
		name     string
		caller   Caller
		template string
		metadata map[string]string
		header   string
		want     string // the requirements in canonical form
		says     string // or the error
	}{
		{name: "nothing", want: ""},
		{name: "metadata", metadata: map[string]string{"isthmus:region": "eu", "customer": "1"}, want: "region=eu"},
		{name: "header before metadata", metadata: map[string]string{"isthmus:rank": "cost"}, header: "rank=startup", want: "rank=startup"},
		{name: "class", metadata: map[string]string{"isthmus:class": "ci", "isthmus:cpu": "2"}, want: "cpu=2; rank=startup; class=ci"},
		{name: "policy by id", caller: Caller{KeyID: "id-1", KeyName: "named"}, want: "isolation=gvisor"},
		{name: "policy by name", caller: Caller{KeyID: "id-2", KeyName: "named"}, metadata: map[string]string{"isthmus:pools": "b,c"}, want: "pools=b"},
		{name: "policy is a floor", caller: Caller{KeyID: "id-1"}, header: "isolation=microvm", want: "isolation=microvm"},
		{name: "policy is never widened", caller: Caller{KeyName: "named"}, header: "pools=c", says: "pools=c in the header X-Isthmus-Require contradicts"},
		{name: "template", template: "desktop", want: "memory=4GiB"},
		{name: "unknown key", metadata: map[string]string{"isthmus:colour": "red"}, says: `"colour" in the metadata is no requirement`},
		{name: "unknown class", header: "class=cd", says: "the classes are ci"},
		{name: "wrong value", header: "cpu=many", says: "cpu in the header"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := maps.Clone(c.metadata)
			request := placement.Request{Template: c.template, Metadata: c.metadata}
			c.caller.Require = &c.header
			err := Require(&request, c.caller, rules)
			require.Equal(t, before, request.Metadata, "the metadata comes back as it was set")
			if c.says != "" {
				require.Equal(t, adapters.KindInvalid, adapters.KindOf(err))
				require.ErrorContains(t, err, c.says)
				require.Equal(t, placement.CodeInvalidRequirement, FailureOf(err).Code)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, request.Require.String())
		})
	}
}

func TestIdempotencyKeyAsARequirement(t *testing.T) {
	request := placement.Request{Metadata: map[string]string{"isthmus:idempotency-key": "Job 1"}}
	require.NoError(t, Require(&request, Caller{}, &Rules{}))
	require.Equal(t, "Job 1", request.IdempotencyKey)
	request.IdempotencyKey = "other"
	require.ErrorContains(t, Require(&request, Caller{}, &Rules{}), "contradict")

	first, err := Create("team", openapi.NewSandbox{TemplateID: "base"}, nil, Limits{MaxLife: defaultLifeV2})
	require.NoError(t, err)
	other, err := Create("team", openapi.NewSandbox{TemplateID: "other"}, nil, Limits{MaxLife: defaultLifeV2})
	require.NoError(t, err)
	require.NotEqual(t, first.Fingerprint, other.Fingerprint, "old creates can have a key too")
}

func TestRefusalHasDetails(t *testing.T) {
	pools := []placement.Offer{{Pool: placement.Pool{Name: "a", Provider: "p"}, Template: &adapters.Template{}}}
	_, err := placement.Decide(placement.Request{Require: stated(t, "isolation=microvm")}, pools, time.Time{}, placement.Settings{})
	failure := FailureOf(err)
	require.Equal(t, 400, failure.Status)
	body, err := json.Marshal(failure.Body())
	require.NoError(t, err)
	var answer struct {
		Code      int    `json:"code"`
		ErrorCode string `json:"error_code"`
		Details   struct {
			Attempts []struct {
				Pool  string   `json:"pool"`
				Unmet []string `json:"unmet_requirements"`
			} `json:"attempts"`
		} `json:"details"`
	}
	require.NoError(t, json.Unmarshal(body, &answer))
	require.Equal(t, "no_eligible_provider", answer.ErrorCode)
	require.Equal(t, "a", answer.Details.Attempts[0].Pool)
	require.Contains(t, answer.Details.Attempts[0].Unmet, "isolation")
	body, err = json.Marshal(FailureOf(adapters.Errorf(adapters.KindNotFound, "no")).Body())
	require.NoError(t, err)
	require.NotContains(t, string(body), "details")
}
