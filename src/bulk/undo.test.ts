import fc from 'fast-check'
import { expect, it } from 'vitest'
import { channels, channelTable } from '../values/channels.ts'
import { type LoggedChange, planUndo } from './undo.ts'

const definitions = { relationship: () => undefined, isRelationship: () => false }
const names = ['first_name', 'last_name', 'language'] as const

/** Writes of an existing entity, each by the import or by another request. */
const writes = fc.array(
  fc.record({ name: fc.constantFrom(...names), value: fc.nat(3).map(String), is_import: fc.boolean() }),
  { minLength: 1, maxLength: 8 },
)

it('restores each field to the value before the import unless another write came after, and writes no other', () => {
  fc.assert(
    fc.property(writes, given => {
      const values: Record<string, string | null> = { first_name: null, last_name: 'L', language: null }
      const first = given.findIndex(({ is_import }) => is_import)
      fc.pre(first !== -1)
      const changes = given.map(({ name, value, is_import }, index): LoggedChange => {
        const before = { [name]: values[name] }
        values[name] = value
        return {
          version: index + 2,
          operation: 'update',
          before,
          after: { [name]: value },
          links: null,
          aliases: [],
          is_import,
        }
      })
      const plan = planUndo(changes, definitions)
      const body = 'body' in plan ? plan.body : {}
      for (const name of names) {
        const own = given
          .map((each, index) => ({ ...each, index }))
          .filter(each => each.name === name && each.index >= first)
        const imported = own.filter(({ is_import }) => is_import)
        const last = own.at(-1)
        if (imported.length === 0) expect(name in body).toBe(false)
        else if (!last!.is_import) expect(plan.left).toContainEqual({ path: `/${name}`, reason: 'changed_since' })
        else {
          const foreign = own.findLastIndex(({ is_import }) => !is_import)
          expect(body[name]).toEqual(changes[own[foreign + 1]!.index]!.before![name])
        }
      }
    }),
  )
})

it.each(channels)('never writes the summary of the answers on the channel %s', channel => {
  const flag = channelTable[channel].flag
  const change = { version: 2, operation: 'update' as const, links: null, aliases: [], is_import: true }
  const [before, after] = [
    { [flag]: false, first_name: 'A' },
    { [flag]: true, first_name: 'B' },
  ]
  expect(planUndo([{ ...change, before, after }], definitions)).toMatchObject({ body: { first_name: 'A' } })
  expect(planUndo([{ ...change, before, after }], definitions)).not.toHaveProperty(['body', flag])
})
