import type { Static } from 'typebox'
import type { Attribute, ConsentType, Definitions, Segment, Stack } from '../../client/index.ts'
import { rulesOf } from '../../src/attributes/rules.ts'
import { newAttribute } from '../../src/attributes/schema.ts'
import { newConsentType } from '../../src/consents/schema.ts'
import { parseJson } from '../../src/http/input/json.ts'
import { trimAndCheck } from '../../src/http/input/trim.ts'
import { compile } from '../../src/http/input/validate.ts'
import { definitionState } from '../../src/organizations/definition-schema.ts'
import { peopleKey } from '../../src/organizations/definitions.ts'
import { newSegment } from '../../src/segments/schema.ts'
import { newStack } from '../../src/stacks/schema.ts'
import { inStoredOrder } from '../../src/stacks/stacks.ts'
import { noRules } from '../../src/values/attribute-rules.ts'
import { type Detail, Fault } from '../../src/values/errors.ts'
import { Type } from '../../src/values/json-schema.ts'
import type { Declared } from './declared.ts'
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

/** The file is invalid, or it changes an immutable field. The message lists every fault with its path. Nothing was changed. */
export class SchemaFileError extends Error {
  constructor(name: string, details: Detail[]) {
    super([`${name} cannot be used:`, ...details.map(({ path, message }) => `  ${path || '/'} ${message}`)].join('\n'))
  }
}

// The limits of the service for a request body.
const limits = { jsonDepth: 32, stringBytes: 65_536, keyBytes: 150 }

/**
 * Parses a schema file as the service parses a body: texts are trimmed, and repeated or unknown keys are refused. Throws a
 * SchemaFileError, whose message has `name` and every fault with its path.
 */
export function parseSchemaFile(bytes: Buffer, name: string): Declared {
  try {
    const parsed = trimAndCheck(parseJson(bytes, limits) as Record<string, unknown>, limits)
    compile(schemaFile)(parsed, 'body')
    const declared = withDefaults(parsed as SchemaFile)
    const faults = findFaults(declared)
    if (faults.length > 0) throw new SchemaFileError(name, faults)
    return declared
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const { details, message } = error.refusal
    throw new SchemaFileError(name, details.length > 0 ? details : [{ path: '', message }])
  }
}

function withDefaults({ stacks, attributes, consent_types, segments }: SchemaFile): Declared {
  return {
    stacks: stacks.map(
      ({ key, kind, name = key, retention_days = null, label = null, summary, erased_with = null }) => ({
        ...{ key, kind, name, retention_days, label, summary: summary ? inStoredOrder(summary) : null, erased_with },
      }),
    ),
    attributes: attributes.map(({ key, name = key, description = null, target_stack = null, ...rest }) => ({
      key,
      name,
      description,
      target_stack,
      ...{ cardinality: 'one' as const, indexed: false, searchable: false, state: 'active' as const },
      ...noRules,
      ...rest,
    })),
    consent_types: consent_types.map(({ key, name = key, description = null, channels, ...rest }) => ({
      key,
      name,
      description,
      channels: channels.map(({ channel, is_default = false, double_opt_in = false }) => ({
        channel,
        is_default,
        double_opt_in,
      })),
      ...{ mandatory: false, default_state: false, state: 'active' as const, ...rest },
    })),
    ...(segments && {
      segments: segments.map(({ key, name = key, description = null, filter }) => ({ key, name, description, filter })),
    }),
  }
}

/**
 * Returns the file for a schema. Equal schemas give equal files: stacks are sorted by key, active attributes by owner and key,
 * and times, ids and defaults are left out. Consent types are sorted by id, archived ones included, so that a new organization
 * assigns the same ids. The consents of people refer to these ids. Segments are sorted by key, and the list is left out if there are none.
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

function stackEntry(stack: Stack): SchemaFile['stacks'][number] {
  const { key, kind, name, retention_days, label, summary, erased_with } = stack
  return {
    ...{ key, kind },
    ...(name !== key && { name }),
    ...(retention_days !== null && { retention_days }),
    ...(label !== null && { label }),
    ...(summary !== null && { summary }),
    ...(erased_with !== null && { erased_with }),
  }
}

function segmentEntry({ key, name, description, filter }: Segment): NonNullable<SchemaFile['segments']>[number] {
  return { key, ...(name !== key && { name }), ...(description !== null && { description }), filter }
}

function attributeEntry(attribute: Attribute): SchemaFile['attributes'][number] {
  const { owner, key, type, target_stack, cardinality, indexed, searchable, name, description } = attribute
  return {
    owner,
    key,
    type,
    ...(target_stack !== null && { target_stack }),
    ...(cardinality !== 'one' && { cardinality }),
    ...(indexed && { indexed }),
    ...(searchable && { searchable }),
    ...rulesOf(attribute),
    ...(name !== key && { name }),
    ...(description !== null && { description }),
  }
}

function consentTypeEntry(type: ConsentType): SchemaFile['consent_types'][number] {
  const { key, name, description, state, mandatory, default_state, channels } = type
  return {
    key,
    channels: channels
      .toSorted((a, b) => compare(a.channel, b.channel))
      .map(({ channel, is_default, double_opt_in }) => ({
        channel,
        ...(is_default && { is_default }),
        ...(double_opt_in && { double_opt_in }),
      })),
    ...(name !== key && { name }),
    ...(description !== null && { description }),
    ...(mandatory && { mandatory }),
    ...(default_state && { default_state }),
    ...(state !== 'active' && { state }),
  }
}
