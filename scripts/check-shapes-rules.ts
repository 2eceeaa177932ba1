import { findAll, functionOf, listOf, nodeOf, partsOf, type Tree, walk, withoutCasts } from './check-shapes-tree.ts'

/** The tables as the rules see them: the columns of each in order, and its columns that are never null. */
export type Tables = Map<string, { columns: string[] }>

/** A broken rule: its name, what is wrong, and what to write instead. */
export type Broken = { rule: string; message: string }

/** A rule looks at the commands of one text. */
type Rule = (commands: Tree[], tables: Tables) => Broken[]

const modifying = ['InsertStmt', 'UpdateStmt', 'DeleteStmt']
const queries = ['SelectStmt', ...modifying]

/** The CTEs of a query, each with its query. */
const ctesOf = (query: Tree): unknown[] =>
  listOf((query.withClause as Tree | undefined)?.ctes).map(cte => nodeOf(cte, 'CommonTableExpr')!.ctequery)

const isModifying = (query: unknown) => modifying.some(kind => nodeOf(query, kind))

export const isOrganizationTable = (tables: Tables, name: unknown): boolean =>
  tables.get(name as string)?.columns.includes('organization_id') === true

const relationOf = (query: Tree) => (query.relation as Tree).relname as string

/** One text is one command: Citus sends a text with several commands as a whole, again for each of them. */
const oneCommand: Rule = commands =>
  commands.length === 1
    ? []
    : [{ rule: 'one command', message: 'has several commands: send each as a query of the same flush' }]

const insertIsMain: Rule = commands => {
  const messages: string[] = []
  for (const command of commands)
    walk(command, (kind, query) => {
      if (!queries.includes(kind)) return true
      const ctes = ctesOf(query)
      if (kind === 'InsertStmt' && ctes.length > 0 && !ctes.some(isModifying))
        messages.push('has a WITH before its INSERT: write it behind, as `insert into … with … select`')
      if (ctes.some(cte => nodeOf(cte, 'InsertStmt')))
        messages.push('inserts in a CTE: make the INSERT the main command of a statement of its own, in the same flush')
      if (kind !== 'SelectStmt' && ctes.some(isModifying))
        messages.push(
          'has a modifying CTE beside a modifying main command: make the main command a SELECT from the CTEs',
        )
      return true
    })
  return messages.map(message => ({ rule: 'insert is main', message }))
}

/** Citus finds the shard of `insert … select` by a column of a table of the organization, not by a parameter. */
const insertKnowsShard: Rule = (commands, tables) =>
  findAll(commands, 'InsertStmt').flatMap(insert => {
    const select = nodeOf(insert.selectStmt, 'SelectStmt')
    if (!select || select.valuesLists || !isOrganizationTable(tables, relationOf(insert))) return []
    const position = listOf(insert.cols).findIndex(column => nodeOf(column, 'ResTarget')?.name === 'organization_id')
    const value = nodeOf(listOf(select.targetList)[position], 'ResTarget')?.val
    const column = nodeOf(value, 'ColumnRef')
    if (column && partsOf(column).at(-1) === 'organization_id') return []
    const message =
      'inserts rows that no table binds to a shard: select h.organization_id from change_heads h cross join …, where h.organization_id = $1'
    return [{ rule: 'insert knows its shard', message }]
  })

const volatileFunctions = new Set([
  ...[
    'set_config',
    'nextval',
    'setval',
    'currval',
    'lastval',
    'random',
    'gen_random_uuid',
    'clock_timestamp',
    'timeofday',
  ],
  ...['statement_timestamp', 'txid_current', 'pg_sleep', 'pg_notify', 'pg_advisory_lock', 'pg_advisory_xact_lock'],
  ...['pg_try_advisory_lock', 'pg_try_advisory_xact_lock', 'pg_advisory_lock_shared', 'pg_current_wal_lsn'],
])

/** An UPDATE or DELETE, in a CTE or not, is sent to its shard only without volatile functions. */
const noVolatileUpdate: Rule = commands =>
  [...findAll(commands, 'UpdateStmt'), ...findAll(commands, 'DeleteStmt')].flatMap(query =>
    findAll(query, 'FuncCall')
      .map(functionOf)
      .filter(name => volatileFunctions.has(name))
      .map(name => ({
        rule: 'no volatile update',
        message: `calls ${name}() in an UPDATE or DELETE: call it in a SELECT before it`,
      })),
  )

// From pg_proc.provolatile. Casts to and from a time depend on the session too, but their types are not known here.
const stableFunctions = new Set([
  ...['now', 'concat', 'concat_ws', 'format', 'to_char', 'to_json', 'to_jsonb', 'row_to_json', 'to_date', 'date_trunc'],
  ...['json_build_object', 'json_build_array', 'jsonb_build_object', 'jsonb_build_array', 'json_agg', 'jsonb_agg'],
  ...[
    'json_object_agg',
    'jsonb_object_agg',
    'array_to_string',
    'array_to_json',
    'current_setting',
    'age',
    'quote_literal',
  ],
  ...['to_timestamp', 'make_timestamptz', 'jsonb_populate_record', 'jsonb_to_record'],
])

/** In an UPDATE or DELETE, Citus evaluates stable functions itself, so they take no columns and stand in no CASE or COALESCE. */
const noStableUpdate: Rule = commands => {
  const messages = new Set<string>()
  for (const query of [...findAll(commands, 'UpdateStmt'), ...findAll(commands, 'DeleteStmt')]) {
    const own = ['SelectStmt']
    const calls = (value: unknown) =>
      findAll(value, 'FuncCall', own).filter(call => stableFunctions.has(functionOf(call)))
    const parts = [query.targetList, query.whereClause, query.fromClause, query.usingClause]
    for (const call of calls(parts))
      if (findAll(call.args, 'ColumnRef').length > 0)
        messages.add(`calls ${functionOf(call)}(), which is stable, over columns in an UPDATE or DELETE`)
    for (const branch of [...findAll(parts, 'CaseExpr', own), ...findAll(parts, 'CoalesceExpr', own)])
      for (const call of calls(branch))
        messages.add(`calls ${functionOf(call)}(), which is stable, in CASE or COALESCE of an UPDATE or DELETE`)
  }
  return [...messages].map(message => ({ rule: 'no stable update', message: `${message}: pass the value from Node` }))
}

/** In an UPDATE or DELETE, Citus evaluates what has no columns, and takes the comparison of a WHEN for such a thing: it becomes null. */
const noSimpleCase: Rule = commands =>
  [...findAll(commands, 'UpdateStmt'), ...findAll(commands, 'DeleteStmt')].some(query =>
    findAll(query, 'CaseExpr').some(({ arg }) => arg !== undefined),
  )
    ? [
        {
          rule: 'no simple case',
          message: 'compares by `case x when y` in an UPDATE or DELETE: write `case when x = y`',
        },
      ]
    : []

const noCopyIn: Rule = commands =>
  findAll(commands, 'CopyStmt').flatMap(copy =>
    copy.is_from
      ? [{ rule: 'no copy in', message: 'copies rows in, and a lost race fails there with XX000: insert them' }]
      : [],
  )

/** The location of a row holds until the transaction ends, except when a shard is moved between two statements. */
const countedLocations: Rule = commands =>
  commands.flatMap(command => {
    const isGiven =
      findAll(command, 'ColumnDef').some(column => isTid(column.typeName)) ||
      findAll(command, 'TypeCast').some(cast => isTid(cast.typeName) && findAll(cast.arg, 'ParamRef').length > 0)
    const counts = findAll(command, 'FuncCall').some(call => functionOf(call) === 'count' && call.agg_star === true)
    if (!isGiven || counts) return []
    const message =
      'trusts a ctid of an earlier statement: count the rows that it touched, and fail or decide again if one is missing'
    return [{ rule: 'counted locations', message }]
  })

const isTid = (type: unknown) =>
  listOf((type as Tree | undefined)?.names).some(name => nodeOf(name, 'String')?.sval === 'tid')

/**
 * With a condition that the values of the parameters alone make false, Citus finds no shard for an UPDATE or DELETE of a CTE, and
 * sends the statement with the names of the coordinator's tables.
 */
const noConstantCondition: Rule = commands => {
  const messages = new Set<string>()
  for (const command of commands)
    walk(command, (kind, query) => {
      const changes = queries.includes(kind) ? ctesOf(query) : []
      for (const change of changes)
        for (const condition of conditionsOf(
          (nodeOf(change, 'UpdateStmt') ?? nodeOf(change, 'DeleteStmt'))?.whereClause,
        ))
          if (isConstant(condition))
            messages.add(
              'has a condition without columns in an UPDATE or DELETE of a CTE: make it a part of one with a column, as e.id = case when $2 then $3 else 0 end',
            )
      const isOuter = kind === 'JoinExpr' && query.jointype !== 'JOIN_INNER'
      if (isOuter && query.quals !== undefined && conditionsOf(query.quals).some(isConstant))
        messages.add('has a condition without columns in an outer join: select it, and decide above the join')
      return true
    })
  return [...messages].map(message => ({ rule: 'no constant condition', message }))
}

/** The conditions that an AND joins, and those in it. */
function conditionsOf(condition: unknown): unknown[] {
  if (condition === undefined) return []
  const both = nodeOf(condition, 'BoolExpr')
  return both?.boolop === 'AND_EXPR' ? listOf(both.args).flatMap(conditionsOf) : [condition]
}

/** Whether the values of the parameters alone make the condition true or false. */
const isConstant = (condition: unknown) =>
  findAll([condition], 'ParamRef').length > 0 &&
  ['ColumnRef', 'SubLink'].every(kind => findAll([condition], kind).length === 0)

/** Workers do not know parameters of a session that PostgreSQL does not define. */
const noOwnSettings: Rule = commands =>
  findAll(commands, 'FuncCall').flatMap(call => {
    const name = nodeOf(
      nodeOf(listOf(call.args)[0], 'A_Const')?.sval === undefined ? undefined : listOf(call.args)[0],
      'A_Const',
    )
    const text = (name?.sval as Tree | undefined)?.sval as string | undefined
    if (!['current_setting', 'set_config'].includes(functionOf(call)) || !text?.includes('.')) return []
    return [
      { rule: 'no own settings', message: `uses the setting ${text}, which a worker does not know: pass the value` },
    ]
  })

/** Every table of an organization is bound to `$n` in its own part of the query, or to a table that is. */
const oneOrganization: Rule = (commands, tables) =>
  commands.flatMap(command =>
    unboundTables(command, tables).map(table => ({
      rule: 'one organization',
      message: `reads or writes ${table} without organization_id = $n: bind it`,
    })),
  )

function unboundTables(command: unknown, tables: Tables): string[] {
  const unbound: string[] = []
  const look = (value: unknown, outer: ReadonlySet<string>) =>
    walk(value, (kind, query) => {
      if (!queries.includes(kind)) return true
      const { found, inner } = bindingsOf(query, kind, tables, outer)
      unbound.push(...found)
      // The two sides of a UNION are queries that have no kind of their own in the tree.
      for (const [field, part] of Object.entries(query))
        look(field === 'larg' || field === 'rarg' ? { SelectStmt: part } : part, inner)
      return false
    })
  look([command], new Set())
  return unbound
}

/** The unbound tables of one query, without its subqueries, and the aliases that are bound within it. */
function bindingsOf(query: Tree, kind: string, tables: Tables, outer: ReadonlySet<string>) {
  const parts = [query.fromClause, query.usingClause, query.whereClause]
  const relations = findAll(parts.slice(0, 2), 'RangeVar', queries)
  if (kind !== 'SelectStmt' && kind !== 'InsertStmt') relations.push(query.relation as Tree)
  const own = relations.filter(relation => isOrganizationTable(tables, relation.relname))
  const aliasOf = (relation: Tree) => ((relation.alias as Tree | undefined)?.aliasname ?? relation.relname) as string
  const bound = new Set(outer)
  for (const relation of own) bound.delete(aliasOf(relation))
  const equalities = equalitiesOf(query, parts)
  for (let size = -1; size !== bound.size; ) {
    size = bound.size
    for (const [side, other] of equalities) {
      const alias = organizationAlias(side, own.length === 1 ? aliasOf(own[0]!) : undefined)
      if (alias !== undefined && isBound(other, bound)) bound.add(alias)
    }
  }
  const found = own.filter(relation => !bound.has(aliasOf(relation))).map(({ relname }) => relname as string)
  if (kind === 'InsertStmt' && isOrganizationTable(tables, relationOf(query)) && !insertsParameter(query))
    found.push(relationOf(query))
  return { found, inner: bound }
}

/** The pairs of the conditions `a = b` that all rows of the query meet. */
function equalitiesOf(query: Tree, parts: unknown[]): [unknown, unknown][] {
  const pairs: [unknown, unknown][] = []
  const add = (condition: unknown) => {
    const both = nodeOf(condition, 'BoolExpr')
    if (both?.boolop === 'AND_EXPR') for (const arg of listOf(both.args)) add(arg)
    const equal = nodeOf(condition, 'A_Expr')
    const isEqual = equal?.kind === 'AEXPR_OP' && nodeOf(listOf(equal.name)[0], 'String')?.sval === '='
    if (isEqual) pairs.push([equal.lexpr, equal.rexpr], [equal.rexpr, equal.lexpr])
  }
  add(query.whereClause)
  for (const join of findAll(parts.slice(0, 2), 'JoinExpr', queries)) add(join.quals)
  return pairs
}

/** The alias e of `e.organization_id`, or the only table of the query if the column has none. */
function organizationAlias(value: unknown, onlyAlias: string | undefined): string | undefined {
  const column = nodeOf(value, 'ColumnRef')
  const parts = column ? partsOf(column) : []
  if (parts.at(-1) !== 'organization_id') return undefined
  return parts.length === 2 ? parts[0] : onlyAlias
}

const isBound = (value: unknown, bound: ReadonlySet<string>) => {
  // COPY takes no parameters. The code that builds its text checks the number.
  if (nodeOf(withoutCasts(value), 'ParamRef') || nodeOf(value, 'A_Const')?.ival) return true
  const alias = organizationAlias(value, undefined)
  return alias !== undefined && bound.has(alias)
}

/** Whether all rows of `values (…)` have a parameter as their organization. Another rule looks at `insert … select`. */
function insertsParameter(insert: Tree): boolean {
  const position = listOf(insert.cols).findIndex(column => nodeOf(column, 'ResTarget')?.name === 'organization_id')
  const rows = listOf(nodeOf(insert.selectStmt, 'SelectStmt')?.valuesLists)
  return rows.every(row => nodeOf(withoutCasts(listOf(nodeOf(row, 'List')?.items)[position]), 'ParamRef') !== undefined)
}

const rules: Rule[] = [
  oneCommand,
  insertIsMain,
  insertKnowsShard,
  noVolatileUpdate,
  noStableUpdate,
  noSimpleCase,
  noCopyIn,
  countedLocations,
  noConstantCondition,
  noOwnSettings,
  oneOrganization,
]

/** Returns the rules that a text breaks, each once. `loadModule()` of libpg-query must have resolved. */
export function brokenRules(commands: Tree[], tables: Tables): Broken[] {
  const broken = rules.flatMap(rule => rule(commands, tables))
  return [...new Map(broken.map(item => [item.message, item])).values()]
}

/** Reads the tables out of the commands of a schema (`create table`). */
export function tablesOf(schema: Tree[]): Tables {
  const tables: Tables = new Map()
  for (const create of findAll(schema, 'CreateStmt')) {
    const columns = findAll(create.tableElts, 'ColumnDef')
    tables.set(relationOf(create), { columns: columns.map(({ colname }) => colname as string) })
  }
  return tables
}
