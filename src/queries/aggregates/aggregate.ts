import { type Row, statement } from '../../db/db.ts'
import { isUnknownParameter } from '../../db/pg-errors.ts'
import { closeAtAbort, type Snapshot } from '../../db/snapshot.ts'
import { openExportedSnapshot } from '../../entities/read/exported-snapshot.ts'
import { waitForClientSql } from '../../entities/read/read-sql.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import { readSchemaVersionSql } from '../../organizations/definitions-sql.ts'
import type { Call } from '../../route/call.ts'
import type { HandlerResult } from '../../route/result.ts'
import { pointer, refuse, throwValueRefusal } from '../../values/errors.ts'
import { unknownTimeZone } from '../../values/formats.ts'
import { filterOptionsOf, printNotes } from '../pages/handlers.ts'
import type { Rendered } from '../plan/fragment.ts'
import { DefinitionsChanged, planWithValuesSql, type Reading, underDefinitions } from '../plan/reading.ts'
import { type GroupKey, howToStream, type ParsedAggregate, parseAggregate } from './parse.ts'
import { type AggregateBody, maxGroups } from './schema.ts'
import { type AggregateRow, aggregateStatements, areFew, fetchPart, maxGroupBytes, type PartRow } from './select.ts'

// PostgreSQL overestimates the number of groups and would sort all entities, which takes 1.5 times as long.
export const groupByHashSql = statement('', 'set local enable_sort = off')

/**
 * Groups and measures the entities of a stack that pass a filter. Throws a Fault of 400, 403, or 504 after the
 * deadline.
 */
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
  const run = <R extends object>(query: Rendered): Promise<R> =>
    reading.runOnePlanned<R>({ ...query, settings: groupByHashSql }).catch(throwExplained(parsed.keys))
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
  return throwValueRefusal('/group_by', message, 'The result would be too large.')
}

/** Explains the error of PostgreSQL for a time zone that only Node.js knows. */
const throwExplained = (keys: readonly GroupKey[]) => (error: unknown) => {
  if (!isUnknownParameter(error)) throw error
  const index = keys.findIndex(({ span }) => span !== undefined && span.timeZone !== 'UTC')
  return refuse('invalid_parameter', 'The database does not know the time zone.', {
    details: [{ path: pointer('group_by', index, 'time_zone'), message: unknownTimeZone }],
    cause: error,
  })
}

/** The members of a response that concern all groups together. */
const printFindings = (parsed: ParsedAggregate, { skipped, sequence }: Pick<AggregateRow, 'skipped' | 'sequence'>) =>
  `"skipped":${JSON.stringify(skippedOf(parsed, skipped))},"sequence":${sequence}`

/** The paths of the measures and fields that met values of another type. */
function skippedOf({ keys, measures }: ParsedAggregate, counts: readonly number[]) {
  const paths = [
    ...keys.map((_, index) => pointer('group_by', index)),
    ...measures.map((_, index) => pointer('measures', index)),
  ]
  return paths.map((path, index) => ({ path, values: counts[index] ?? 0 })).filter(({ values }) => values > 0)
}

/**
 * Streams the groups of the entities of a stack that pass a filter as lines, and a last line about all groups. Each
 * part has the full deadline of a request. Throws the Faults of an aggregate, and of 503 if too many streams are open.
 */
export async function streamAggregate(call: Call<AggregateBody>, stack_id: number): Promise<HandlerResult> {
  const { context, caller, body } = call
  const request = { stack_id, filter: body.filter ?? {}, ...filterOptionsOf(call, stack_id), isStreamed: true }
  const stream = await underDefinitions(context, request, async reading => {
    const { definitions } = reading
    const { parsed, notes } = await reading.parse(() => parseAggregate(body, definitions, stack_id, request))
    const { snapshot, close } = await openExportedSnapshot(context.db, caller.organization.id)
    // PostgreSQL enforces the deadline too.
    const end = closeAtAbort(snapshot, close, call.signal)
    try {
      await declareGroups(snapshot, parsed, definitions, stack_id)
      const first = await readPart(snapshot)
      return linesFrom(call, {
        snapshot,
        end,
        first,
        print: row => `{${printFindings(parsed, row)}${printNotes(notes)}}\n`,
      })
    } catch (error) {
      await end()
      call.signal.throwIfAborted()
      return throwExplained(parsed.keys)(error)
    }
  })
  return { status: 200, stream }
}

/** Declares the cursor of the groups. Throws {@link DefinitionsChanged} if the snapshot has other definitions. */
async function declareGroups(
  snapshot: Snapshot,
  parsed: ParsedAggregate,
  definitions: Definitions,
  stack_id: number,
): Promise<void> {
  const { countCandidates, stream } = aggregateStatements(parsed, definitions, stack_id)
  for (const setting of [waitForClientSql, planWithValuesSql, groupByHashSql]) await snapshot.query(setting, [])
  const [head] = await snapshot.query<{ schema_version: number }>(readSchemaVersionSql, [definitions.organization_id])
  if (head?.schema_version !== definitions.version) throw new DefinitionsChanged('the definitions changed')
  const useCandidates =
    countCandidates !== undefined && areFew((await run<{ count: number }>(snapshot, countCandidates))[0]!)
  await run(snapshot, stream(useCandidates))
}

const run = <R extends Row>(snapshot: Snapshot, { text, values }: Rendered) =>
  snapshot.query<R>(statement('', text), values)

const readPart = async (snapshot: Snapshot) => (await run<PartRow>(snapshot, fetchPart))[0]!

type Groups = { snapshot: Snapshot; end: () => Promise<void>; first: PartRow; print: (last: PartRow) => string }

/** Reads each part after the previous one was sent. */
async function* linesFrom({ within, signal }: Call, { snapshot, end, first, print }: Groups): AsyncGenerator<string> {
  try {
    signal.throwIfAborted()
    let part = first
    for (; part.lines !== null; part = await within(() => readPart(snapshot))) yield part.lines
    yield print(part)
  } finally {
    await end()
  }
}
