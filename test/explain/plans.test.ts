import { describe } from 'vitest'
import { testAggregates } from './aggregates.ts'
import { testAliases } from './aliases.ts'
import { testChanges } from './changes.ts'
import { testConsents } from './consents.ts'
import { testErasure } from './erasure.ts'
import { testFilters } from './filters.ts'
import { testMatches } from './matches.ts'
import { testMerges } from './merges.ts'
import { testPages } from './pages.ts'
import { testRules } from './rules.ts'
import { testSearch } from './search.ts'
import { testSegments } from './segments.ts'
import { testSessions } from './sessions.ts'
import { useWorld } from './world.ts'
import { testWrites } from './writes.ts'

const world = useWorld()

describe('aggregates', () => testAggregates(world))
describe('aliases', () => testAliases(world))
describe('changes', () => testChanges(world))
describe('consents', () => testConsents(world))
describe('erasure', () => testErasure(world))
describe('writes', () => testWrites(world))
// Filters come after the writes, because the indexes of sorted pages add statements to a write.
describe('filters', () => testFilters(world))
describe('matches', () => testMatches(world))
describe('merges', () => testMerges(world))
describe('pages', () => testPages(world))
describe('rules', () => testRules(world))
describe('search', () => testSearch(world))
describe('segments', () => testSegments(world))
describe('sessions', () => testSessions(world))
