package translate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/openapi"
	"github.com/isthmus/isthmus/translate"
)

func TestPauseOfSDKsThatAlwaysAskForMemory(t *testing.T) {
	yes, no := true, false
	tests := []struct {
		version string
		sent    *bool
		want    *bool
	}{
		{"2.50.0", &yes, nil},
		{"2.50.0", &no, &no},
		{"2.50.0", nil, nil},
		{"2.45.1", &yes, nil},
		{"1.13.2", &yes, nil},
		{"2.51.0", &yes, &yes},
		{"2.63.0", &yes, &yes},
		{"3.0.0-beta.1", &yes, &yes},
		{"", &yes, &yes},
		{"new", &yes, &yes},
	}
	for _, test := range tests {
		t.Run(test.version, func(t *testing.T) {
			require.Equal(t, test.want, translate.Pause(openapi.SandboxPauseRequest{Memory: test.sent}, &test.version).Memory)
		})
	}
	require.Equal(t, &yes, translate.Pause(openapi.SandboxPauseRequest{Memory: &yes}, nil).Memory)
}

func TestCreateOfSDKsThatAlwaysAskForMemory(t *testing.T) {
	yes := true
	for sdk, want := range map[string]adapters.Level{
		"2.41.0": "", "2.42.0": adapters.LevelMemory, "": adapters.LevelMemory,
	} {
		body := openapi.NewSandbox{TemplateID: "base", AutoPause: &yes, AutoPauseMemory: &yes}
		request, err := translate.Create("team", body, &sdk, translate.Limits{MaxLife: time.Hour})
		require.NoError(t, err)
		require.True(t, request.AutoPause)
		require.Equal(t, want, request.AutoPauseLevel, sdk)
	}
}
