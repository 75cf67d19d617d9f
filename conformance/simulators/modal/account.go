//go:build linux

package modal

import (
	"context"
	"maps"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// builderVersion is that of the image builder.
const builderVersion = "2025.06"

// environmentName is that of the one environment.
const environmentName = "main"

// ClientHello greets a client.
func (c *control) ClientHello(context.Context, *emptypb.Empty) (*pb.ClientHelloResponse, error) {
	return pb.ClientHelloResponse_builder{ImageBuilderVersion: builderVersion}.Build(), nil
}

// AuthTokenGet gives the token that all other calls need.
func (c *control) AuthTokenGet(context.Context, *pb.AuthTokenGetRequest) (*pb.AuthTokenGetResponse, error) {
	return pb.AuthTokenGetResponse_builder{Token: c.token(accountSubject)}.Build(), nil
}

// accountSubject is for whom an auth token is.
const accountSubject = "account"

// AppGetOrCreate finds an app, or makes it.
func (c *control) AppGetOrCreate(_ context.Context, r *pb.AppGetOrCreateRequest) (*pb.AppGetOrCreateResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, there := c.apps[r.GetAppName()]
	if !there {
		if r.GetObjectCreationType() == pb.ObjectCreationType_OBJECT_CREATION_TYPE_UNSPECIFIED {
			return nil, status.Errorf(codes.NotFound, "App '%s' not found in environment '%s'", r.GetAppName(), environmentName)
		}
		id = newID("ap")
		c.apps[r.GetAppName()] = id
	}
	return pb.AppGetOrCreateResponse_builder{AppId: id}.Build(), nil
}

// EnvironmentGetOrCreate describes the one environment, whatever its name.
func (c *control) EnvironmentGetOrCreate(_ context.Context, r *pb.EnvironmentGetOrCreateRequest) (*pb.EnvironmentGetOrCreateResponse, error) {
	most := int32(c.config.MaxSandboxes)
	name := r.GetDeploymentName()
	if name == "" {
		name = environmentName
	}
	settings := pb.EnvironmentSettings_builder{ImageBuilderVersion: builderVersion, MaxConcurrentTasks: &most}.Build()
	return pb.EnvironmentGetOrCreateResponse_builder{
		EnvironmentId: "en-0000000000000000000000", Metadata: pb.EnvironmentMetadata_builder{Name: name, Settings: settings}.Build(),
	}.Build(), nil
}

// SecretGetOrCreate keeps environment variables.
func (c *control) SecretGetOrCreate(_ context.Context, r *pb.SecretGetOrCreateRequest) (*pb.SecretGetOrCreateResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := newID("st")
	c.secrets[id] = maps.Clone(r.GetEnvDict())
	return pb.SecretGetOrCreateResponse_builder{SecretId: id, Metadata: pb.SecretMetadata_builder{Name: r.GetDeploymentName(), EnvironmentName: environmentName}.Build()}.Build(), nil
}

// environment is what secrets come to, the later ones over the earlier ones.
func (s *Server) environment(ids []string, sources []*pb.SecretSource, direct map[string]string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	env := map[string]string{}
	add := func(id string) error {
		secret, there := s.secrets[id]
		if !there {
			return status.Errorf(codes.NotFound, "Secret '%s' not found", id)
		}
		maps.Copy(env, secret)
		return nil
	}
	if len(sources) == 0 {
		for _, id := range ids {
			if err := add(id); err != nil {
				return nil, err
			}
		}
	}
	for _, source := range sources {
		if source.HasSecretId() {
			if err := add(source.GetSecretId()); err != nil {
				return nil, err
			}
			continue
		}
		maps.Copy(env, source.GetEnv().GetContents())
	}
	maps.Copy(env, direct)
	return env, nil
}

// WorkspaceBillingRates tells the prices, in US dollars per unit and hour.
func (c *control) WorkspaceBillingRates(context.Context, *pb.WorkspaceBillingRatesRequest) (*pb.WorkspaceBillingRatesResponse, error) {
	rates := map[string]string{"sandbox_cpu_core": "0.1419", "sandbox_memory_gib": "0.0242", "gpu_t4": "0.59", "gpu_l4": "0.80", "gpu_h100": "3.95"}
	return pb.WorkspaceBillingRatesResponse_builder{Rates: rates}.Build(), nil
}
