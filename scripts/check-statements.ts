import { loadModule } from 'libpg-query'
import type pg from 'pg'
import { openDatabase } from '../src/db/db.ts'
import { migrate } from '../src/db/migrate.ts'
import { type Call, findCalls, type TsType } from './check-statements-calls.ts'
import { type Catalog, nullableColumns } from './check-statements-nulls.ts'
import { withScratchDatabase, withServer } from './schema.ts'
import { report, type Violation } from './source.ts'

// PostgreSQL prepares each named statement against the migrated schema. The check compares its parameters and columns with the
// TypeScript types of the calls that run it, and reports what is surely wrong. It accepts a type that is narrower than the column: a
// union of literals for text, an interface for JSON.

/** The beginnings of the paths whose calls need not name a constant statement, and the reasons. */
const exemptPaths = {
  'src/queries/': 'Filters are composed for each request.',
  'src/entities/read/projected-portion.ts': 'A projection decides the text.',
  'src/bulk/export.ts': 'COPY takes no parameters.',
  'src/http/overload/rate-limit.ts': 'The statements are those of rate-limiter-flexible.',
  'src/sql-views/sql-views.ts': 'Names of schemas and roles are no parameters.',
  'src/db/': 'It sends the statements of the others, and SET, which takes no parameters.',
  'cli/': 'A backup has any table, and settings of its own.',
}

/** Columns of results, `statement.column`, that are never null for a reason that the check does not see. */
const neverNull = {
  'A change of an entity has a stack, a version and what it wrote.': [
    ...['list_changed_entities.stack_id', 'read_last_changes.stack_id', 'read_last_changes.version'],
    'read_logged_identifiers.stack_id',
  ],
  'A change is of an entity or of a definition.': ['match_changes.entity', 'read_definition_changes.definition_id'],
  'One transaction stores a key and its response.': ['read_key', 'read_keys'].flatMap(name => [
    ...[`${name}.status`, `${name}.headers`, `${name}.body`],
  ]),
  'The walk has at least one row.': ['read_included.octets'],
}

/** A type of PostgreSQL. `sample` is a value as the connection's parser gives it, undefined for JSON. */
type PgType = { name: string; category: string; element: PgType | undefined; sample: unknown }

/** The parameters and columns of a statement, as PostgreSQL describes them. */
type Description = { parameters: PgType[]; columns: { name: string; type: PgType; isNullable: boolean }[] }

/** A connection to the database, and what its catalog has. */
export type Server = { client: pg.Client; types: Map<number, PgType>; catalog: Catalog }

/** Runs `work` with a connection as the service has it, to a migrated database. */
export async function withCheckedServer<T>(url: string, work: (server: Server) => Promise<T>): Promise<T> {
  await loadModule()
  const db = openDatabase(url, { connections: 1, statementTimeoutMs: 30_000 })
  const client = await db.connect()
  try {
    return await work({ client, types: await readTypes(client), catalog: await readCatalog(client) })
  } finally {
    await client.end()
    await db.close()
  }
}

/** Texts of values, by the name or category (pg_type.typcategory) of their type. */
const texts: Record<string, string> = { N: '1', B: 't', D: '2000-01-01 00:00:00+00', T: '1 day', bytea: '\\x00' }

async function readTypes(client: pg.Client): Promise<Server['types']> {
  const { rows } = await client.query<{ oid: number; name: string; category: string; of: number }>(
    `select oid::integer, typname as name, typcategory as category, typelem::integer as of from pg_type
     order by typcategory = 'A'`,
  )
  const types: Server['types'] = new Map()
  for (const { oid, name, category, of } of rows) {
    const element = category === 'A' ? types.get(of) : undefined
    const parse = client.getTypeParser(oid, 'text') as (text: string) => unknown
    const text = texts[element?.name ?? name] ?? texts[element?.category ?? category] ?? 'a'
    const sample = /^_?jsonb?$/.test(name) ? undefined : parse(element ? `{"${text.replace('\\', '\\\\')}"}` : text)
    types.set(oid, { name, category, element, sample })
  }
  return types
}

async function readCatalog(client: pg.Client): Promise<Catalog> {
  const columns = await client.query<{ table: string; name: string; isNullable: boolean }>(
    `select c.relname as table, a.attname as name, not a.attnotnull as "isNullable"
     from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
       and c.relnamespace in ('public'::regnamespace, 'pg_catalog'::regnamespace)
     order by a.attrelid, a.attnum`,
  )
  const functions = await client.query<{ name: string; isAggregate: boolean; isStrict: boolean }>(
    `select proname as name, bool_or(prokind = 'a') as "isAggregate", bool_and(proisstrict) as "isStrict"
     from pg_proc group by proname`,
  )
  return {
    tables: Map.groupBy(columns.rows, ({ table }) => table),
    functions: new Map(functions.rows.map(row => [row.name, row])),
  }
}

/** Has PostgreSQL parse and describe a statement. pg describes only what it also runs. */
function parse(client: pg.Client, text: string) {
  const parsed = { parameters: [] as number[], fields: [] as pg.FieldDef[] }
  const { promise, resolve, reject } = Promise.withResolvers<typeof parsed>()
  client.query({
    submit: (connection: pg.Connection) => {
      connection.once('parameterDescription', ({ dataTypeIDs }) => parsed.parameters.push(...dataTypeIDs))
      connection.parse({ name: '', text, types: [] }, true)
      connection.describe({ type: 'S', name: '' }, true)
      connection.sync()
    },
    handleRowDescription: ({ fields }: pg.QueryResult) => parsed.fields.push(...fields),
    handleReadyForQuery: () => resolve(parsed),
    handleError: reject,
  } as pg.Submittable)
  return promise
}

async function describe({ client, types, catalog }: Server, text: string): Promise<Description> {
  const { parameters, fields } = await parse(client, text)
  const nullable = nullableColumns(text, catalog)
  const columns = fields.map(({ name, dataTypeID }, index) => ({
    name,
    type: types.get(dataTypeID)!,
    isNullable: nullable.length === fields.length && nullable[index]!,
  }))
  return { parameters: parameters.map(oid => types.get(oid)!), columns }
}

/** Compares calls with the statements that they run. Reports also an exception that no column needs. */
export async function checkCalls(server: Server, calls: Call[], exceptions: string[][]): Promise<Violation[]> {
  const violations: Violation[] = []
  const unused = new Set(exceptions.flat())
  const runs = calls.flatMap(call => call.statements.map(({ name, text }) => ({ call, name, text })))
  for (const some of Map.groupBy(runs, ({ name, text }) => `${name} ${text}`).values()) {
    const { call: first, name, text } = some[0]!
    const add = ({ path, line }: Call, message: string) =>
      violations.push({ path, line, message: `the statement ${name || text} ${message}` })
    const isExcepted = (column: string) => {
      unused.delete(`${name}.${column}`)
      return exceptions.flat().includes(`${name}.${column}`)
    }
    try {
      const description = await describe(server, text)
      for (const { call } of some) for (const message of compare(call, description, isExcepted)) add(call, message)
      const read = new Set(some.flatMap(({ call }) => call.fields?.map(field => field.name) ?? []))
      for (const column of some.some(({ call }) => call.fields) ? description.columns : [])
        if (!read.has(column.name)) add(first, `returns ${column.name}, which no type of its rows has`)
    } catch (error) {
      add(first, `is refused: ${(error as Error).message}`)
    }
  }
  const ofExceptions = [...unused].map(column => `${column} needs no exception any more: remove it`)
  return [...violations, ...ofExceptions.map(message => ({ path: 'scripts/check-statements.ts', line: 1, message }))]
}

function* compare(
  { values, isOpen, fields }: Call,
  { parameters, columns }: Description,
  isExcepted: (column: string) => boolean,
): Generator<string> {
  if (values.length > parameters.length || (!isOpen && values.length < parameters.length))
    yield `has ${parameters.length} parameters, and the call passes ${isOpen ? 'at least ' : ''}${values.length} values`
  for (const [index, value] of values.slice(0, parameters.length).entries())
    if (!isAccepted(parameters[index]!, value))
      yield `has $${index + 1} of type ${parameters[index]!.name}, and the call passes ${value.text}`
  for (const [name, some] of Map.groupBy(fields ?? [], field => field.name)) {
    const column = columns.find(each => each.name === name)
    const wrong = column && some.find(({ type }) => !fits(type, column.type.sample))
    const takesNull = some.some(({ type: { kinds } }) => kinds.has('null') || kinds.has('any'))
    if (!column && !some.some(({ isOptional }) => isOptional)) yield `does not return ${name}`
    if (wrong) yield `returns ${name} as ${column.type.name}, not as ${wrong.type.text}`
    if (column?.isNullable && !takesNull && !isExcepted(name))
      yield `returns ${name}, which may be null, as ${some[0]!.type.text}`
  }
}

/** Whether values like the sample may be of a type, besides null. */
function fits({ kinds, element }: TsType, sample: unknown): boolean {
  if (sample === undefined) return true
  const kind = Array.isArray(sample) ? 'array' : typeof sample === 'object' ? sample!.constructor.name : typeof sample
  if (!isWithin(kinds, [kind])) return false
  return !element || !Array.isArray(sample) || fits(element, sample[0])
}

/** The kinds of values that pg sends for a parameter, by the name or category of its type. It is `string` for the others. */
const accepted: Record<string, string[]> = {
  A: ['array'],
  B: ['boolean'],
  D: ['string', 'Date'],
  N: ['number', 'bigint'],
  numeric: ['number', 'bigint', 'string'],
  bytea: ['Buffer', 'Uint8Array'],
}

function isAccepted({ name, category, element }: PgType, type: TsType): boolean {
  if (!isWithin(type.kinds, accepted[name] ?? accepted[category] ?? ['string'])) return false
  return !element || !type.element || isAccepted(element, type.element)
}

const isWithin = (kinds: Set<string>, wanted: string[]) =>
  kinds.has('any') || [...kinds].every(kind => ['null', 'undefined', ...wanted].includes(kind))

/** Leaves out the calls in files whose paths begin with one of `paths`. Reports a path that leaves out none. */
export function checkUnknown(unknown: Violation[], paths: string[]): Violation[] {
  const message = 'scripts/check-statements.ts exempts no call here any more: remove the path'
  const idle = paths.filter(path => !unknown.some(call => call.path.startsWith(path)))
  return [
    ...unknown.filter(call => !paths.some(path => call.path.startsWith(path))),
    ...idle.map(path => ({ path, line: 1, message })),
  ]
}

async function main(): Promise<void> {
  const { calls, unknown } = await findCalls(['src/', 'cli/'])
  const compared = await withServer(url =>
    withScratchDatabase(url, async scratch => {
      await migrate(scratch)
      return withCheckedServer(scratch, server => checkCalls(server, calls, Object.values(neverNull)))
    }),
  )
  report([...checkUnknown(unknown, Object.keys(exemptPaths)), ...compared])
  const statements = new Set(calls.flatMap(call => call.statements.map(({ text }) => text)))
  console.log(`${statements.size} statements in ${calls.length} calls were compared`)
}

if (import.meta.main) await main()
