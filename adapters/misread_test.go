package adapters_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
)

func TestMisunderstoodIsBounded(t *testing.T) {
	cause := errors.New("what the log is told")
	err := adapters.Misunderstood(adapters.KindUnknownOutcome, cause, strings.Repeat("ä", 400))
	require.Equal(t, adapters.KindUnknownOutcome, adapters.KindOf(err))
	require.ErrorIs(t, err, cause)
	misread := adapters.MisreadOf(err)
	require.LessOrEqual(t, len(misread.Reason), 300)
	require.True(t, strings.HasPrefix(misread.Reason, "ää") && strings.HasSuffix(misread.Reason, "ä…"))
	require.Empty(t, misread.Feature)
	require.Nil(t, adapters.MisreadOf(adapters.Errorf(adapters.KindUnavailable, "an outage")))
	require.Nil(t, adapters.MisreadOf(nil))
}

func TestTouchingSaysTheNearestCapability(t *testing.T) {
	outage := adapters.Errorf(adapters.KindUnavailable, "an outage")
	require.Equal(t, error(outage), adapters.Touching(adapters.FeaturePause, outage))
	require.NoError(t, adapters.Touching(adapters.FeaturePause, nil))

	inner := adapters.Misunderstood(adapters.KindPrecondition, nil, "odd")
	inner.RetryAfter = time.Second
	near := adapters.Touching(adapters.FeatureExec, inner)
	far := adapters.Touching(adapters.FeatureCreate, adapters.Wrap(adapters.KindUnavailable, near, "not made"))
	require.Equal(t, adapters.FeatureExec, adapters.MisreadOf(far).Feature)
	require.Equal(t, adapters.KindUnavailable, adapters.KindOf(far))
	var typed *adapters.Error
	require.ErrorAs(t, near, &typed)
	require.Equal(t, adapters.Error{Kind: adapters.KindPrecondition, Message: "odd", RetryAfter: time.Second, Err: typed.Err}, *typed)
	require.Empty(t, adapters.MisreadOf(inner).Feature, "it is not changed")
}

func TestUnreadableRepeatsNothing(t *testing.T) {
	type answer struct {
		Session struct {
			Timeout int `json:"timeout"`
		} `json:"session"`
		At time.Time `json:"at"`
	}
	for text, want := range map[string]string{
		`<html>hunter2</html>`:                 "it is not JSON",
		``:                                     "it is empty",
		`{"session":{"timeout":1`:              "it ends in its middle",
		`{"session":{"timeout":"hunter2"}}`:    "its field session.timeout is of the wrong kind, string",
		`{"session":{"timeout":1e99}}`:         "its field session.timeout is of the wrong kind, number",
		`["hunter2"]`:                          "it is JSON of another form",
		`{"at":"hunter2"}`:                     "a time in it is none",
		`{"session":{"timeout":{"a":"hunt"}}}`: "its field session.timeout is of the wrong kind, object",
	} {
		var into answer
		err := json.NewDecoder(strings.NewReader(text)).Decode(&into)
		require.Error(t, err, text)
		require.Equal(t, want, adapters.Unreadable(err), text)
	}
	require.Equal(t, "it broke off", adapters.Unreadable(errors.New("connection reset")))
	require.Equal(t, "hibernating", adapters.Strange("hibernating"))
	require.Equal(t, "no word", adapters.Strange("a secret, or\nanything"))
	require.Equal(t, "none", adapters.Strange(""))
}

func TestVendorSaysWhoWasNotUnderstood(t *testing.T) {
	cause := errors.New("what the log is told")
	made := adapters.Vendor("Nimbus").Misread(true, cause, "it is a page")
	require.Equal(t, adapters.KindUnknownOutcome, made.Kind)
	require.Equal(t, "Nimbus gave no answer that can be read (it is a page): it may or may not have been done", made.Message)
	asked := adapters.Vendor("Nimbus").Misread(false, cause, "it is a page")
	require.Equal(t, adapters.KindUnavailable, asked.Kind)
	require.Equal(t, "Nimbus gave no answer that can be read: it is a page", asked.Message)
	require.ErrorIs(t, asked, cause)
	require.NotNil(t, adapters.MisreadOf(asked))
}
