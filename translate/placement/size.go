package placement

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus/isthmus/adapters"
)

// checkSize chooses the size that the sandbox gets: the template's own, enlarged to what is required, and in a
// pool of fixed sizes the smallest of these that holds it.
func checkSize(c *candidate) {
	wanted := adapters.Resources{CPU: c.need.CPU, MemoryMB: c.need.MemoryMB, DiskMB: c.need.DiskMB}
	if t := c.offer.Template; t != nil {
		wanted.CPU = max(wanted.CPU, t.Resources.CPU)
		wanted.MemoryMB = max(wanted.MemoryMB, t.Resources.MemoryMB)
		wanted.DiskMB = max(wanted.DiskMB, t.Resources.DiskMB)
	}
	c.size = wanted
	most := largest(&c.offer.Pool)
	tooLarge := false
	exceeds := func(key string, wanted, most int, write func(int) string) {
		if most > 0 && wanted > most {
			c.lack(key, write(wanted), write(most))
			tooLarge = true
		}
	}
	exceeds("cpu", wanted.CPU, most.CPU, strconv.Itoa)
	exceeds("memory", wanted.MemoryMB, most.MemoryMB, mib)
	exceeds("disk", wanted.DiskMB, most.DiskMB, mib)
	if len(c.offer.Pool.Sizes) > 0 && !tooLarge {
		fixedSize(c, wanted)
	}
}

// largest is the bound on each figure; 0: none.
func largest(p *Pool) adapters.Resources {
	if len(p.Sizes) == 0 {
		return p.Max
	}
	most := p.Sizes[0]
	for _, s := range p.Sizes[1:] {
		most.CPU, most.MemoryMB, most.DiskMB = wider(most.CPU, s.CPU), wider(most.MemoryMB, s.MemoryMB), wider(most.DiskMB, s.DiskMB)
	}
	return most
}

// wider returns the wider of two bounds, of which 0 is none.
func wider(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// fixedSize takes the smallest size that holds the wanted one; a figure that a size leaves open holds all. That
// no one size holds all of it, although for each figure there is one, is a fault of its own.
func fixedSize(c *candidate, wanted adapters.Resources) {
	sizes := slices.SortedFunc(slices.Values(c.offer.Pool.Sizes), func(a, b adapters.Resources) int {
		return cmp.Or(cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.MemoryMB, b.MemoryMB), cmp.Compare(a.DiskMB, b.DiskMB))
	})
	for _, s := range sizes {
		s = adapters.Resources{CPU: cmp.Or(s.CPU, wanted.CPU), MemoryMB: cmp.Or(s.MemoryMB, wanted.MemoryMB), DiskMB: cmp.Or(s.DiskMB, wanted.DiskMB)}
		if s.CPU >= wanted.CPU && s.MemoryMB >= wanted.MemoryMB && s.DiskMB >= wanted.DiskMB {
			c.size = s
			return
		}
	}
	c.lack(UnmetSize, strconv.Itoa(wanted.CPU)+" CPU, "+mib(wanted.MemoryMB)+" memory, "+mib(wanted.DiskMB)+" disk", "no one size has all of it")
}

// checkGPU takes the first wanted kind that the pool has enough of.
func checkGPU(c *candidate) {
	count := max(c.need.GPUCount, 1)
	var offered []string
	enough := false
	for _, wanted := range c.need.GPU {
		for _, gpu := range c.offer.Pool.GPUs {
			if wanted != anyGPU && !strings.EqualFold(wanted, gpu.Kind) {
				continue
			}
			enough = true
			if max(gpu.Max, 1) >= count {
				c.gpu = GPU{Kind: gpu.Kind, Max: count}
				return
			}
		}
	}
	for _, gpu := range c.offer.Pool.GPUs {
		offered = append(offered, gpu.Kind)
	}
	if enough {
		c.lack("gpu-count", strconv.Itoa(count), "")
		return
	}
	c.lack("gpu", strings.Join(c.need.GPU, ","), cmp.Or(strings.Join(offered, ","), adapters.None))
}
