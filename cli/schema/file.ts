import type { Static } from 'typebox'
import type { Attribute, ConsentType, Definitions, Segment, Stack } from '../../client/index.ts'
import { newAttribute } from '../../src/attributes/schema.ts'
import { newConsentType } from '../../src/consents/schema.ts'
import { definitionState } from '../../src/organizations/definition-schema.ts'
import { peopleKey } from '../../src/organizations/definitions.ts'
import { newSegment } from '../../src/segments/schema.ts'
import { newStack } from '../../src/stacks/schema.ts'
import { inStoredOrder } from '../../src/stacks/stacks.ts'
import { ruleNames } from '../../src/values/attribute-rules.ts'
import type { Detail } from '../../src/values/errors.ts'
import { Type } from '../../src/values/json-schema.ts'
import { listFaults, parseChecked } from '../checked-file.ts'
import { channelDefaults, type Declared, defaultsOf } from './declared.ts'
import { findFaults } from './rules.ts'

const closed = { additionalProperties: false }
const state = Type.Optional(definitionState)

/** The format of the file: the request bodies of the schema endpoints, with a `state`. */
const schemaFile = Type.Object(
  {
    version: Type.Literal(1),
    stacks: Type.Array(newStack),
    attributes: Type.Array(Type.Object({ ...newAttribute.properties, state }, closed)),
    consent_types: Type.Array(Type.Object({ ...newConsentType.properties, state }, closed)),
    segments: Type.Optional(Type.Array(newSegment)),
  },
  closed,
)
type SchemaFile = Static<typeof schemaFile>

/**
 * The file is invalid, or it changes an immutable field. The message lists every fault with its path. The organization
 * is unchanged.
 */
export class SchemaFileError extends Error {
  constructor(name: string, details: Detail[]) {
    super(listFaults(name, details))
  }
}

/**
 * Parses a schema file like the body of a request: it trims texts, and refuses repeated and unknown keys. Throws a
 * SchemaFileError, whose message has `name` and every fault with its path.
 */
export function parseSchemaFile(bytes: Buffer, name: string): Declared {
  const parsed = parseChecked(schemaFile, bytes, details => new SchemaFileError(name, details))
  const declared = withDefaults(parsed)
  const faults = findFaults(declared)
  if (faults.length > 0) throw new SchemaFileError(name, faults)
  return declared
}

function withDefaults({ stacks, attributes, consent_types, segments }: SchemaFile): Declared {
  return {
    stacks: stacks.map(({ summary, ...stack }) => ({
      ...{ key: stack.key, kind: stack.kind },
      ...defaultsOf.stack(stack.key),
      ...stack,
      summary: summary ? inStoredOrder(summary) : null,
    })),
    attributes: attributes.map(each => ({ ...{ key: each.key }, ...defaultsOf.attribute(each.key), ...each })),
    consent_types: consent_types.map(({ channels: named, ...type }) => {
      const { name, description, ...flags } = defaultsOf.consentType(type.key)
      const channels = named.map(({ channel, ...marks }) => ({ channel, ...channelDefaults, ...marks }))
      return { ...{ key: type.key, name, description }, channels, ...flags, ...type }
    }),
    ...(segments && {
      segments: segments.map(each => ({ ...{ key: each.key }, ...defaultsOf.segment(each.key), ...each })),
    }),
  }
}

/**
 * Returns the file for a schema. Equal schemas give equal files: stacks are sorted by key, active attributes by owner
 * and key, and times, ids and defaults are left out. Consent types are sorted by id, including archived ones, because
 * the consents of people refer to these ids and a new organization must assign the same ones. Segments are sorted by
 * key, and the list is left out if there are none.
 */
export function schemaFileText(
  { stacks, attributes, consent_types }: Definitions,
  segments: readonly Segment[] = [],
): string {
  const active = attributes.filter(attribute => attribute.state === 'active')
  const file: SchemaFile = {
    version: 1,
    stacks: stacks.toSorted((a, b) => compare(a.key, b.key)).map(stackEntry),
    attributes: active.toSorted((a, b) => compareOwners(a, b) || compare(a.key, b.key)).map(attributeEntry),
    consent_types: consent_types.toSorted((a, b) => a.id - b.id).map(consentTypeEntry),
    ...(segments.length > 0 && { segments: segments.toSorted((a, b) => compare(a.key, b.key)).map(segmentEntry) }),
  }
  return `${JSON.stringify(file, null, 2)}\n`
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

const compareOwners = ({ owner: a }: Attribute, { owner: b }: Attribute) =>
  Number(b === peopleKey) - Number(a === peopleKey) || compare(a, b)

/** The members of a definition with these names, in this order, except defaults. */
function entryOf<Definition extends object, Name extends keyof Definition>(
  definition: Definition,
  names: readonly Name[],
  defaults: object,
): Pick<Definition, Name> {
  const given: Partial<Record<PropertyKey, unknown>> = defaults
  return Object.fromEntries(
    names.flatMap(name => (definition[name] === given[name] ? [] : [[name, definition[name]]])),
  ) as Pick<Definition, Name>
}

const stackEntry = (stack: Stack) =>
  entryOf(
    stack,
    ['key', 'kind', 'name', 'retention_days', 'label', 'summary', 'erased_with'],
    defaultsOf.stack(stack.key),
  ) as SchemaFile['stacks'][number]

const attributeEntry = (attribute: Attribute) =>
  entryOf(attribute, attributeMembers, defaultsOf.attribute(attribute.key)) as SchemaFile['attributes'][number]

const attributeMembers = [
  ...(['owner', 'key', 'type', 'target_stack', 'cardinality', 'indexed', 'searchable'] as const),
  ...ruleNames,
  ...(['name', 'description'] as const),
]

const segmentEntry = (segment: Segment) =>
  entryOf(segment, ['key', 'name', 'description', 'filter'], defaultsOf.segment(segment.key)) as SegmentEntry

type SegmentEntry = NonNullable<SchemaFile['segments']>[number]

function consentTypeEntry({ channels, ...type }: ConsentType): SchemaFile['consent_types'][number] {
  const { key, ...more } = entryOf(
    type,
    ['key', 'name', 'description', 'mandatory', 'default_state', 'state'],
    defaultsOf.consentType(type.key),
  )
  const sorted = channels.toSorted((a, b) => compare(a.channel, b.channel))
  const entries = sorted.map(each => entryOf(each, ['channel', 'is_default', 'double_opt_in'], channelDefaults))
  return { key, channels: entries, ...more } as SchemaFile['consent_types'][number]
}
