import type { Static } from 'typebox'
import { findFirstBearer, readSequenceAt } from '../../changes/read-changes.ts'
import { effectiveConsents } from '../../consents/answers.ts'
import type { Context, Reading } from '../../db/context.ts'
import { currentDefinitions, type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import { definitionsAfter, readDefinitionChanges } from '../../organizations/past-definitions.ts'
import type { Signal } from '../../process/signal.ts'
import type { Call } from '../../route/call.ts'
import { entityTag } from '../../route/entity-tag.ts'
import type { EnvelopeResult } from '../../route/result.ts'
import { requireScope } from '../../route/scopes.ts'
import { createValueRefusal, Fault, throwBrokenRule } from '../../values/errors.ts'
import { recordIdOf } from '../../values/formats.ts'
import { pastTimeOf } from '../../values/instant.ts'
import { storedNumber, Type, time } from '../../values/json-schema.ts'
import { mobileKey } from '../../values/phone-numbers.ts'
import { phoneMember, profileFlags, readTexts } from '../../values/profile-fields.ts'
import { readBearersSql } from '../bearers-sql.ts'
import { relationshipValue } from '../entity-row.ts'
import { idOfAddress } from '../find-entity.ts'
import { labels, linksById } from '../schema.ts'
import type { Address } from '../write-request.ts'
import {
  type PastChange,
  type PastState,
  readPastChange,
  readPastState,
  readPastTargets,
  type ShownLinks,
} from './past-state.ts'

/** The query of a read of one entity. Other parameters are ignored. */
export const asOfQuery = Type.Object({
  at: Type.Optional(
    time('Return the entity as a read returned it at this time, RFC 3339. Needs the scope `changes:read`.'),
  ),
  version: Type.Optional(
    storedNumber('Return the entity as it was right after the write of this version. Needs the scope `changes:read`.'),
  ),
  labels,
  links: linksById,
})
export type AsOfQuery = Static<typeof asOfQuery>

type Moment = { entity: { stack_id: number; id: string }; change: PastChange; at: string; sequence: number }

/**
 * Reads an entity as it was at a time or a version, from the change log. An external identifier leads to the entity
 * that has it today. Before a merge, the identifiers of the merged person lead to that person, and after it to the
 * survivor. Returns undefined if the entity did not exist then, or if its values in the log were erased. Throws a Fault
 * of 400 for a wrong moment, and of 403 without the scope.
 */
export async function readAsOf(
  call: Call<AsOfQuery>,
  stack_id: number,
  address: Address,
): Promise<Extract<EnvelopeResult, { json: string }> | undefined> {
  const { context, signal, body } = call
  if (body.labels) throwBrokenRule('/labels', 'cannot be given with `at` or `version`: labels are those of today')
  const time = momentOf(body)
  requireScope(call.caller, 'changes:read')
  const reading = readingOf(context, signal)
  const moment = await findMoment(reading, stack_id, address, time)
  if (!moment) return undefined
  const { entity, change, at, sequence } = moment
  const definitions = await currentDefinitions(context, signal)
  const later = await readDefinitionChanges(reading, sequence)
  const state = await readPastState(reading.db, definitions, entity, change.version)
  if (!state) return undefined
  const links = await readPastTargets(reading, state.links, sequence)
  const shownLinks = body.links === 'id' ? links.map(withoutNames) : links
  const shown = showEntity(entity, state, shownLinks, change, definitionsAfter(definitions, sequence, later))
  return {
    status: 200,
    json: JSON.stringify({ ...shown, as_of: { at, sequence, version: change.version } }),
    headers: { ETag: entityTag(change.version) },
  }
}

/** Without a name, a target is shown by its internal identifier. */
const withoutNames = ({ attribute, targets }: ShownLinks): ShownLinks => ({
  attribute,
  targets: targets.map(target => ({ ...target, external_id: null })),
})

const readingOf = ({ db, organization_id }: Context, signal: Signal): Reading => ({
  db: { query: (statement, values) => db.query(statement, values, signal) },
  organization_id,
})

type Time = { version: number } | { at: string }

/** The version, or the time in UTC with milliseconds, which is the format of the change log. */
function momentOf({ at, version }: AsOfQuery): Time {
  if (at === undefined) return { version: version! }
  if (version !== undefined)
    throw new Fault(createValueRefusal('/version', 'Give either `at` or `version`. Both were given.'))
  return { at: pastTimeOf(at) }
}

/** Finds the change that the state follows from. Returns undefined if the entity did not exist then. */
async function findMoment(
  reading: Reading,
  stack_id: number,
  address: Address,
  time: Time,
): Promise<Moment | undefined> {
  if ('version' in time) {
    const id = await idOfAddress(reading, stack_id, address)
    if (id === undefined) return undefined
    const entity = { stack_id, id }
    const change = await readPastChange(reading, entity, time)
    if (change?.version !== time.version || endsEntity(change)) return undefined
    return { entity, change, at: change.at, sequence: change.sequence }
  }
  const sequence = await readSequenceAt(reading, time.at)
  let id = await firstIdOf(reading, stack_id, address)
  while (id !== undefined) {
    const entity = { stack_id, id }
    const change = await readPastChange(reading, entity, { sequence })
    if (!change) return undefined
    if (!endsEntity(change)) return { entity, change, at: time.at, sequence }
    id = change.merged_into ?? undefined
  }
  return undefined
}

/** Like {@link idOfAddress}, but an alias leads to the person that it came from. */
async function firstIdOf(reading: Reading, stack_id: number, address: Address): Promise<string | undefined> {
  const { db: reader, organization_id } = reading
  if ('id' in address) return address.id
  const names = JSON.stringify([{ stack_id, external_id: address.external_id }])
  const [bearer] = await reader.query<{ id: string }>(readBearersSql, [organization_id, names])
  if (bearer || stack_id !== peopleStackId) return bearer?.id
  return findFirstBearer(reading, address.external_id)
}

const endsEntity = ({ operation, is_erased }: PastChange) =>
  operation === 'delete' || operation === 'merge' || is_erased

/**
 * Shows an entity in the format of a read, under the definitions of that time. Only the country of phone numbers is
 * today's.
 */
function showEntity(
  { stack_id, id }: Moment['entity'],
  { columns, answers, attributes }: PastState,
  links: readonly ShownLinks[],
  { version, at, created_at }: PastChange,
  { stacks, attributeById, consent_types, default_country }: Definitions,
): object {
  const shownValue = (name: (typeof readTexts | typeof profileFlags)[number]) =>
    name === phoneMember
      ? mobileKey(columns.mobile_prefix, columns.mobile_number, default_country)
      : (columns[name] ?? null)
  const isPerson = stack_id === peopleStackId
  const values = new Map(Object.entries(attributes))
  for (const {
    attribute: { id },
    targets,
  } of links) {
    const attribute = attributeById.get(id)!
    values.set(attribute.key, relationshipValue(attribute, targets))
  }
  return {
    ...(isPerson ? { id } : { record_id: recordIdOf(id) }),
    external_id: columns.external_id ?? null,
    ...(isPerson
      ? {
          ...Object.fromEntries([...readTexts, ...profileFlags].map(name => [name, shownValue(name)])),
          consents: effectiveConsents(answers, consent_types),
        }
      : { stack_key: stacks.find(stack => stack.id === stack_id)!.key }),
    attribute_values: Object.fromEntries(values),
    state: columns.active ? 'active' : 'placeholder',
    version,
    created_at,
    updated_at: at,
  }
}
