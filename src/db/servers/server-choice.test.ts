import fc from 'fast-check'
import { expect, it } from 'vitest'
import { sessionAttributes } from '../../process/database-url.ts'
import { type Candidate, chooseServer, isForWrites, refusalOf, type ServerState } from './server-choice.ts'

const stateArbitrary: fc.Arbitrary<ServerState> = fc
  .record({ isStandby: fc.boolean(), isReadOnly: fc.boolean(), timeline: fc.integer({ min: 1, max: 4 }) })
  .map(({ isStandby, isReadOnly, timeline }) => ({
    isStandby,
    isReadOnly,
    system: 'a',
    timeline: isStandby ? undefined : timeline,
  }))
const wantsArbitrary = fc.constantFrom(...sessionAttributes)
const lastArbitrary = fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined })

const choose = (states: ServerState[], wants: (typeof sessionAttributes)[number], last?: number) =>
  chooseServer(
    states.flatMap((state, index): Candidate[] => (refusalOf(state, wants) ? [] : [{ index, state }])),
    wants,
    last,
  )

it('chooses a server for writes that accepts them and is of the newest timeline', () => {
  fc.assert(
    fc.property(fc.array(stateArbitrary, { maxLength: 5 }), lastArbitrary, (states, last) => {
      const usable = states.filter(({ isStandby, isReadOnly }) => !isStandby && !isReadOnly)
      const chosen = choose(states, 'read-write', last)
      const newest = Math.max(...usable.map(({ timeline }) => timeline!))
      const best = { isStandby: false, isReadOnly: false, system: 'a', timeline: newest }
      expect(chosen?.state).toEqual(usable.length === 0 ? undefined : best)
    }),
  )
})

it('stays with the server of before unless another one is better, and else takes the first', () => {
  const primary = { isStandby: false, isReadOnly: false, system: 'a', timeline: 3 }
  expect(choose([primary, primary], 'read-write')?.index).toBe(0)
  expect(choose([primary, primary], 'read-write', 1)?.index).toBe(1)
  expect(choose([{ ...primary, timeline: 4 }, primary], 'primary', 1)?.index).toBe(0)
  const standby = { isStandby: true, isReadOnly: false }
  expect(choose([primary, standby], 'prefer-standby', 0)?.index).toBe(1)
  expect(choose([primary, primary], 'prefer-standby', 1)?.index).toBe(1)
  expect(choose([standby, primary], 'any')?.index).toBe(0)
})

it('does not compare the timelines of two clusters', () => {
  const primary = { isStandby: false, isReadOnly: false }
  const states = [
    { ...primary, system: 'a', timeline: 1 },
    { ...primary, system: 'b', timeline: 9 },
  ]
  expect(choose(states, 'read-write')?.index).toBe(0)
})

it('refuses a server for writes whose timeline is older than one that was seen, or of another cluster', () => {
  fc.assert(
    fc.property(stateArbitrary, wantsArbitrary, fc.integer({ min: 1, max: 4 }), (state, wants, timeline) => {
      const refusal = refusalOf(state, wants, { system: 'a', timeline })
      const before = refusalOf(state, wants)
      const other = refusalOf(state, wants, { system: 'b', timeline: 1 })
      if (before !== undefined || !isForWrites(wants)) expect([refusal, other]).toEqual([before, before])
      else {
        expect(other).toContain('another cluster')
        if (state.timeline! < timeline) expect(refusal).toContain(`is on timeline ${state.timeline}`)
        else expect(refusal).toBeUndefined()
      }
    }),
  )
})

it('allows a server of unknown timeline, because some services of PostgreSQL do not tell it', () =>
  expect(
    refusalOf({ isStandby: false, isReadOnly: false }, 'read-write', { system: 'a', timeline: 5 }),
  ).toBeUndefined())

it.each([
  ['any', [true, true, true]],
  ['read-write', [true, false, false]],
  ['primary', [true, true, false]],
  ['read-only', [false, true, true]],
  ['standby', [false, false, true]],
  ['prefer-standby', [true, true, true]],
] as const)('%s allows what libpq allows', (wants, allowed) => {
  const states = [
    { isStandby: false, isReadOnly: false },
    { isStandby: false, isReadOnly: true },
    { isStandby: true, isReadOnly: false },
  ]
  expect(states.map(state => refusalOf(state, wants) === undefined)).toEqual(allowed)
})
