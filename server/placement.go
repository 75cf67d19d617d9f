package server

import (
	"context"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/server/config"
	"github.com/isthmus/isthmus/server/fleet"
	"github.com/isthmus/isthmus/translate"
	"github.com/isthmus/isthmus/translate/placement"
)

// Reload puts the pools, the ranking, the classes and the requirements of a configuration in place, all of them or
// with an error none. Everything else in it needs a new start.
func (s *Server) Reload(ctx context.Context, c config.Config, pools []fleet.Pool) error {
	if err := s.fleet.Reload(ctx, pools, c.Ranking.Settings()); err != nil {
		return err
	}
	s.rules.Store(c.Rules())
	return nil
}

// LoadAgain implements admin.Placement.
func (s *Server) LoadAgain(ctx context.Context) ([]string, error) {
	if s.options.Reload == nil {
		return nil, adapters.Errorf(adapters.KindUnsupported, "this Isthmus cannot load its configuration again")
	}
	return s.options.Reload(ctx)
}

// Pools implements admin.Placement.
func (s *Server) Pools() []fleet.PoolState { return s.fleet.States() }

// Decision implements admin.Placement.
func (s *Server) Decision(ctx context.Context, sandboxID string) (placement.Decision, error) {
	return s.fleet.Decision(ctx, sandboxID)
}

// Plan implements admin.Placement: the decision for a create, without creating.
func (s *Server) Plan(ctx context.Context, request placement.Request, caller translate.Caller) (placement.Decision, error) {
	if err := translate.Require(&request, caller, s.rules.Load()); err != nil {
		return placement.Decision{}, err
	}
	return s.fleet.Plan(ctx, request)
}
