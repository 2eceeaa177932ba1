import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Client } from '../../client/index.ts'
import { someRuns } from '../../test/support/runs.ts'
import { useService } from '../../test/support/service.ts'
import { applySteps, groupSteps } from './apply.ts'
import { parseSchemaFile, schemaFileText } from './file.ts'
import { planPush } from './plan.ts'

const service = useService()

const types = ['text', 'number', 'boolean', 'date', 'datetime', 'json', 'person', 'stack'] as const
const stackKeys = ['alpha', 'beta', 'gamma']
const texts = {
  name: fc.option(fc.constantFrom('A name', 'Übrigens “so”'), { nil: undefined }),
  description: fc.constantFrom(undefined, null, 'What it says.\nAnd more.'),
}
const state = fc.constantFrom(undefined, 'active', 'archived')

/** The key determines the immutable fields, so that any of these files can be pushed after any other. */
const attribute = fc
  .record({ owner: fc.constantFrom('people', ...stackKeys), type: fc.constantFrom(...types), many: fc.boolean() })
  .chain(({ owner, type, many }) =>
    fc.record(
      {
        owner: fc.constant(owner),
        type: fc.constant(type),
        key: fc.constant(`${type}_${many ? 'many' : 'one'}`),
        cardinality: fc.constant(many ? 'many' : 'one'),
        target_stack: fc.constant(type === 'stack' ? 'alpha' : undefined),
        indexed: type === 'json' ? fc.constant(undefined) : fc.constantFrom(undefined, true, false),
        searchable: type === 'text' ? fc.constantFrom(undefined, true, false) : fc.constant(undefined),
        required: fc.constantFrom(undefined, true),
        ...(['number', 'date', 'text'].includes(type) && !many && { unique: fc.constantFrom(undefined, false) }),
        ...(type === 'number' && {
          enum: fc.constantFrom(undefined, null, [1, 2.5]),
          minimum: fc.constantFrom(undefined, 0),
        }),
        ...(type === 'text' && { pattern: fc.constantFrom(undefined, '^a') }),
        state,
        ...texts,
      },
      { noNullPrototype: true },
    ),
  )

const consent_type = fc.record(
  {
    key: fc.constantFrom('marketing', 'news', 'law', 'surveys'),
    mandatory: fc.boolean(),
    default_state: fc.boolean(),
    channels: fc.uniqueArray(
      fc.record(
        { channel: fc.constantFrom('email', 'sms'), is_default: fc.boolean(), double_opt_in: fc.boolean() },
        { noNullPrototype: true },
      ),
      { minLength: 1, selector: ({ channel }) => channel },
    ),
    state,
    ...texts,
  },
  { noNullPrototype: true },
)

const file = fc
  .record({
    stacks: fc.tuple(
      ...stackKeys.map(key =>
        fc.record({ key: fc.constant(key), retention_days: fc.constantFrom(null, 1, 90), ...texts }),
      ),
    ),
    attributes: fc.uniqueArray(attribute, { maxLength: 8, selector: ({ owner, key }) => `${owner}.${key}` }),
    consent_types: fc.uniqueArray(consent_type, { selector: ({ key }) => key }),
  })
  .map(({ stacks, attributes, consent_types }) => {
    const marked = new Set<string>()
    const marks = (type: (typeof consent_types)[number], channel: string) =>
      !type.mandatory && type.state !== 'archived' && !marked.has(channel) && marked.add(channel)
    // A label names active attributes only.
    const labelOf = (stack: string) => {
      const named = attributes.filter(
        ({ owner, type, state }) => owner === stack && type !== 'json' && state !== 'archived',
      )
      return named.length > 1 ? named.map(({ key }) => `{${key}}`).join(' ') : undefined
    }
    return {
      version: 1,
      stacks: stacks.map(({ name, key, retention_days }) => ({
        ...{ key, name, label: labelOf(key) },
        ...(key === 'beta' ? { kind: 'event', retention_days } : { kind: 'item' }),
      })),
      attributes,
      consent_types: consent_types.map(type => ({
        ...type,
        channels: type.channels.map(({ channel, is_default, double_opt_in }) => ({
          double_opt_in,
          channel,
          is_default: is_default && Boolean(marks(type, channel)),
        })),
      })),
    }
  })

const declaredIn = (content: object) => parseSchemaFile(Buffer.from(JSON.stringify(content)), 'a file')

/** Pushes as the command does, but stops after `maxSteps` steps. Returns the number of planned steps. */
async function push(client: Client, content: object, { archiveMissing = true, maxSteps = Infinity } = {}) {
  const { steps, faults } = planPush(declaredIn(content), await client.schema.get(), archiveMissing)
  expect(faults).toEqual([])
  for (const group of groupSteps(steps.slice(0, maxSteps))) await applySteps(client, group)
  return steps.length
}

async function newClient(): Promise<Client> {
  return (await service.organization()).client
}

it(
  'a pulled file gives an empty organization the same schema and the same consent type ids',
  () =>
    fc.assert(
      fc.asyncProperty(file, async content => {
        const [first, second] = [await newClient(), await newClient()]
        await push(first, content)
        expect(await push(first, content)).toBe(0)
        const pulled = schemaFileText(await first.schema.get())
        await push(second, JSON.parse(pulled), { archiveMissing: false })
        expect(schemaFileText(await second.schema.get())).toBe(pulled)
        const plan = planPush(declaredIn(JSON.parse(pulled)), await second.schema.get())
        expect(plan).toEqual({ steps: [], missing: [], faults: [] })
        const numbers = async (client: Client) =>
          (await client.schema.consentTypes.list().all()).map(({ id, key }) => [id, key])
        expect(await numbers(second)).toEqual(await numbers(first))
      }),
      someRuns(20),
    ),
  120_000,
)

it(
  'any file can follow any other, and a push after an interrupted one completes it',
  () =>
    fc.assert(
      fc.asyncProperty(file, file, fc.nat({ max: 12 }), async (before, after, maxSteps) => {
        const client = await newClient()
        await push(client, before)
        await push(client, after, { maxSteps })
        await push(client, after)
        expect(await push(client, after)).toBe(0)
        const { stacks, attributes, consent_types } = await client.schema.get()
        const active = <T extends { state: string }>(list: T[]) => list.filter(({ state }) => state === 'active')
        const declared = declaredIn(after)
        const keptFor = (list: { key: string; name: string; retention_days: number | null; label: string | null }[]) =>
          new Map(list.map(({ key, name, retention_days, label }) => [key, [name, retention_days, label]]))
        expect(keptFor(stacks)).toEqual(keptFor(declared.stacks))
        const shown = (list: { owner: string; key: string }[]) =>
          new Map(list.map(each => [`${each.owner}.${each.key}`, expect.objectContaining(each)]))
        expect(new Map(active(attributes).map(each => [`${each.owner}.${each.key}`, each]))).toEqual(
          shown(active(declared.attributes)),
        )
        for (const { channels, ...type } of declared.consent_types) {
          const stands = consent_types.find(({ key }) => key === type.key)
          expect(stands).toMatchObject(type)
          expect(new Set(stands!.channels)).toEqual(new Set(channels))
        }
        const named = new Set(declared.consent_types.map(({ key }) => key))
        expect(active(consent_types).filter(({ key }) => !named.has(key))).toEqual([])
      }),
      someRuns(20),
    ),
  120_000,
)
