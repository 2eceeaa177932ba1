import { statement } from '../../db/db.ts'
import { isUnknownParameter } from '../../db/pg-errors.ts'
import type { Call } from '../../route/call.ts'
import type { HandlerResult } from '../../route/result.ts'
import { pointer, refuse } from '../../values/errors.ts'
import { unknownTimeZone } from '../../values/formats.ts'
import { filterOptionsOf, printNotes } from '../pages/handlers.ts'
import type { Rendered } from '../plan/fragment.ts'
import { type Reading, underDefinitions } from '../plan/reading.ts'
import { type GroupKey, howToStream, type ParsedAggregate, parseAggregate } from './parse.ts'
import { type AggregateBody, maxGroups } from './schema.ts'
import { type AggregateRow, aggregateStatements, areFew, maxGroupBytes } from './select.ts'

// PostgreSQL overestimates the number of groups, and would sort all entities: that takes half as long again.
export const groupByHashSql = statement('', 'set local enable_sort = off')

/** Groups and measures the entities of a stack that pass a filter. Throws a Fault of 400 or 403, or 504 if the time is too short. */
export async function aggregateEntities(call: Call<AggregateBody>, stack_id: number): Promise<HandlerResult> {
  const { context, body } = call
  const request = { stack_id, filter: body.filter ?? {}, ...filterOptionsOf(call, stack_id) }
  const json = await underDefinitions(context, request, async reading => {
    const { definitions } = reading
    const { parsed, notes } = await reading.parse(() => parseAggregate(body, definitions, stack_id, request))
    const row = await readGroups(reading, parsed, stack_id)
    return `{"groups":[${row.json}],${printFindings(parsed, row)}${printNotes(notes)}}`
  })
  return { status: 200, json }
}

async function readGroups(reading: Reading, parsed: ParsedAggregate, stack_id: number): Promise<AggregateRow> {
  const run = async <R extends object>(query: Rendered): Promise<R> =>
    (await reading.runPlanned({ ...query, settings: groupByHashSql }).catch(throwExplained(parsed.keys)))[0]![0] as R
  const { countCandidates, probe, aggregate } = aggregateStatements(parsed, reading.definitions, stack_id)
  const useCandidates = countCandidates !== undefined && areFew(await run<{ count: number }>(countCandidates))
  if (!useCandidates && probe) throwIfTooMany((await run<{ groups: number }>(probe)).groups)
  const row = await run<AggregateRow>(aggregate(useCandidates))
  throwIfTooMany(row.groups)
  if (row.bytes > maxGroupBytes)
    throwInvalid(`makes groups of more than 8 MiB: group by shorter values, add a filter, or ${howToStream}`)
  return { ...row, json: row.json ?? '' }
}

function throwIfTooMany(groups: number) {
  if (groups > maxGroups)
    throwInvalid(
      `makes more than ${maxGroups} groups: group by fewer fields or longer spans of time, give a limit, add a filter, or ${howToStream}`,
    )
}

function throwInvalid(message: string): never {
  refuse('invalid_parameter', 'The result would be too large.', { details: [{ path: '/group_by', message }] })
}

/** Explains the error of a time zone that Node.js has and PostgreSQL lacks. */
export const throwExplained = (keys: readonly GroupKey[]) => (error: unknown) => {
  if (!isUnknownParameter(error)) throw error
  const index = keys.findIndex(({ span }) => span !== undefined && span.timeZone !== 'UTC')
  return refuse('invalid_parameter', 'The database does not know the time zone.', {
    details: [{ path: pointer('group_by', index, 'time_zone'), message: unknownTimeZone }],
    cause: error,
  })
}

/** The members of a response with what was counted of all groups. */
export const printFindings = (
  parsed: ParsedAggregate,
  { skipped, sequence }: Pick<AggregateRow, 'skipped' | 'sequence'>,
) => `"skipped":${JSON.stringify(skippedOf(parsed, skipped))},"sequence":${sequence}`

/** The paths of measures and fields with values of another type. */
function skippedOf({ keys, measures }: ParsedAggregate, counts: readonly number[]) {
  const paths = [
    ...keys.map((_, index) => pointer('group_by', index)),
    ...measures.map((_, index) => pointer('measures', index)),
  ]
  return paths.map((path, index) => ({ path, values: counts[index] ?? 0 })).filter(({ values }) => values > 0)
}
