import type { Static } from 'typebox'
import { pastTimeOf } from '../../attributes/instant.ts'
import { findFirstBearer, readSequenceAt } from '../../changes/read-changes.ts'
import type { Database } from '../../db/db.ts'
import { entityTag } from '../../entity-tag.ts'
import { createValueRefusal, Fault } from '../../errors.ts'
import type { Call, EnvelopeResult } from '../../http/pipeline/route.ts'
import { Type } from '../../json-schema.ts'
import { currentDefinitions, peopleStackId } from '../../organizations/definitions.ts'
import { definitionsAfter, readDefinitionChanges } from '../../organizations/past-definitions.ts'
import { requireScope } from '../../scopes.ts'
import type { Signal } from '../../signal.ts'
import { printEntity } from '../read/entity-json.ts'
import { readBearersSql, readBearersWithAliasesSql } from '../write/load-sql.ts'
import type { Address } from '../write-request.ts'
import {
  type PastChange,
  type PastState,
  type Reader,
  readPastChange,
  readPastState,
  readPastTargets,
  type ShownLinks,
} from './past-state.ts'
import { printPastRowSql } from './past-state-sql.ts'

/** The query of a read of one entity. Other parameters are ignored. */
export const asOfQuery = Type.Object({
  at: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'Return the entity as a read returned it at this time, RFC 3339. Needs the scope `changes:read`.',
    }),
  ),
  version: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2_147_483_647,
      description: 'Return the entity as it was right after the write of this version. Needs the scope `changes:read`.',
    }),
  ),
})
export type AsOfQuery = Static<typeof asOfQuery>

type Moment = { entity: { stack_id: number; id: string }; change: PastChange; at: string; sequence: number }

/**
 * Reads an entity as it was at a time or a version, from the change log. An external identifier is that of today. Before a merge, the
 * identifiers of the merged person lead to that person, and after it to the other one. Returns undefined if the entity did not exist then, or if its values in the log were erased. Throws a Fault of 400 for
 * a wrong moment, and of 403 without the scope.
 */
export async function readAsOf(
  call: Call<AsOfQuery>,
  stack_id: number,
  address: Address,
): Promise<EnvelopeResult | undefined> {
  const { caller, db, signal, body } = call
  const time = momentOf(body)
  requireScope(call.caller, 'changes:read')
  const organization_id = caller.organization.id
  const reader = readerOf(db, signal)
  const moment = await findMoment(reader, organization_id, stack_id, address, time)
  if (!moment) return undefined
  const { entity, change, at, sequence } = moment
  const definitions = await currentDefinitions(db, organization_id, signal)
  const later = await readDefinitionChanges(reader, organization_id, sequence)
  const state = await readPastState(reader, definitions, entity, change.version)
  if (!state) return undefined
  const links = await readPastTargets(reader, organization_id, state.links, sequence)
  const [printed] = await reader.query<{ row: string }>(printPastRowSql, [
    organization_id,
    JSON.stringify({ organization_id, ...entity, ...rowOf(state, change) }),
    linksText(links),
  ])
  const json = printEntity(printed!.row, definitionsAfter(definitions, sequence, later), stack_id)
  const as_of = JSON.stringify({ at, sequence, version: change.version })
  return {
    status: 200,
    json: `${json.slice(0, -1)},"as_of":${as_of}}`,
    headers: { ETag: entityTag(change.version) },
  }
}

const readerOf = (db: Database, signal: Signal): Reader => ({
  query: (statement, values) => db.query(statement, values, signal),
})

type Time = { version: number } | { at: string }

/** The version, or the time in UTC with milliseconds, as the change log has it. */
function momentOf({ at, version }: AsOfQuery): Time {
  if (at === undefined) return { version: version! }
  if (version !== undefined)
    throw new Fault(createValueRefusal('/version', 'Give either `at` or `version`. Both were given.'))
  return { at: pastTimeOf(at) }
}

/** Finds the change that the state follows from. Returns undefined if the entity did not exist then. */
async function findMoment(
  reader: Reader,
  organization_id: number,
  stack_id: number,
  address: Address,
  time: Time,
): Promise<Moment | undefined> {
  if ('version' in time) {
    const id = await idOf(reader, organization_id, stack_id, address)
    if (id === undefined) return undefined
    const entity = { stack_id, id }
    const change = await readPastChange(reader, organization_id, entity, time)
    if (change?.version !== time.version || endsEntity(change)) return undefined
    return { entity, change, at: change.at, sequence: change.sequence }
  }
  const sequence = await readSequenceAt(reader, organization_id, time.at)
  let id = await firstIdOf(reader, organization_id, stack_id, address)
  while (id !== undefined) {
    const entity = { stack_id, id }
    const change = await readPastChange(reader, organization_id, entity, { sequence })
    if (!change) return undefined
    if (!endsEntity(change)) return { entity, change, at: time.at, sequence }
    id = change.merged_into ?? undefined
  }
  return undefined
}

/** The entity that has the external identifier today, or that it leads to as an alias. */
async function idOf(
  reader: Reader,
  organization_id: number,
  stack_id: number,
  address: Address,
): Promise<string | undefined> {
  if ('id' in address) return address.id
  const names = JSON.stringify([{ stack_id, external_id: address.external_id }])
  const [bearer] = await reader.query<{ id: string }>(readBearersWithAliasesSql, [organization_id, names])
  return bearer?.id
}

/** As {@link idOf}, but for an alias, the person that it came from. */
async function firstIdOf(
  reader: Reader,
  organization_id: number,
  stack_id: number,
  address: Address,
): Promise<string | undefined> {
  if ('id' in address) return address.id
  const names = JSON.stringify([{ stack_id, external_id: address.external_id }])
  const [bearer] = await reader.query<{ id: string }>(readBearersSql, [organization_id, names])
  if (bearer || stack_id !== peopleStackId) return bearer?.id
  return findFirstBearer(reader, organization_id, address.external_id)
}

const endsEntity = ({ operation, is_erased }: PastChange) =>
  operation === 'delete' || operation === 'merge' || is_erased

function rowOf({ columns, answers, attributes }: PastState, { version, at, created_at }: PastChange): object {
  return { ...columns, answers, attributes, version, created_at, updated_at: at }
}

/** The links in the format of a read's row: [attribute id, position, name of the target, its id]. */
function linksText(links: ShownLinks[]): string | null {
  if (links.length === 0) return null
  return JSON.stringify(
    links.flatMap(({ attribute, targets }) =>
      targets.map(({ id, external_id }, position) => [attribute.id, position, external_id, id]),
    ),
  )
}
