import { findAll, functionOf, listOf, nodeOf, parseCommands, partsOf, type Tree, walk } from './check-shapes-tree.ts'

// A result column may be null if it is a nullable column of a table, comes from the optional side of an outer join, is an aggregate that
// may have no rows or a `case` without `else`, or is computed from such values. Conditions that exclude null count. A column of which
// none of this can be told counts as not null.

/** The tables and functions of the server's catalog. */
export type Catalog = {
  /** The columns of each table, in order. */
  tables: Map<string, Column[]>
  /** The result of a strict function is null if an argument is. */
  functions: Map<string, { isAggregate: boolean; isStrict: boolean }>
}

type Column = { name: string; isNullable: boolean }

/** A table of a FROM clause. Its columns are unknown if it is a function or a view. `outer` has the outer joins that may leave it out. */
type Item = { alias: string; columns: Column[] | undefined; outer: Set<object> }

/** The tables of a query's FROM clause, those of the queries around it, and its common table expressions. */
type Scope = { items: Item[]; around?: Scope; ctes: Map<string, Column[] | undefined>; catalog: Catalog }

/** Returns for each result column whether it may be null, or nothing if the columns are unknown. `loadModule()` must have resolved. */
export function nullableColumns(text: string, catalog: Catalog): boolean[] {
  const columns = columnsOf(parseCommands(text)[0], { items: [], ctes: new Map(), catalog })
  return columns?.map(({ isNullable }) => isNullable) ?? []
}

function columnsOf(query: unknown, around: Scope): Column[] | undefined {
  const select = nodeOf(query, 'SelectStmt')
  if (select) return columnsOfSelect(select, around)
  const write = ['InsertStmt', 'UpdateStmt', 'DeleteStmt'].map(kind => nodeOf(query, kind)).find(Boolean)
  return write && columnsOfWrite(write, around)
}

function columnsOfSelect(select: Tree, around: Scope): Column[] | undefined {
  const scope = enter(select, around)
  if (select.larg) {
    const [left, right] = [select.larg, select.rarg].map(side => columnsOfSelect(side as Tree, scope))
    const isRightNullable = (index: number) => right?.[index]?.isNullable === true
    return left?.map((column, index) => ({ ...column, isNullable: column.isNullable || isRightNullable(index) }))
  }
  for (const node of listOf(select.fromClause)) scope.items.push(...itemsOf(node, scope))
  excludeNulls(select.whereClause, scope)
  return targetsOf(select.targetList, scope, !select.groupClause)
}

function columnsOfWrite(write: Tree, around: Scope): Column[] | undefined {
  const scope = enter(write, around)
  const target = { RangeVar: write.relation }
  const from = [target, ...listOf(write.fromClause), ...listOf(write.usingClause)]
  for (const node of from) scope.items.push(...itemsOf(node, scope))
  excludeNulls(write.whereClause, scope)
  // The condition was true of the values before. The columns that the statement sets may have others.
  const set = listOf(write.targetList).map(item => nodeOf(item, 'ResTarget')?.name)
  const [stored] = itemsOf(target, scope)
  for (const [index, column] of scope.items[0]!.columns?.entries() ?? [])
    if (set.includes(column.name)) column.isNullable = stored!.columns![index]!.isNullable
  return targetsOf((write.returningClause as Tree | undefined)?.exprs, scope, false)
}

/** The scope of a query with its common table expressions. */
function enter(query: Tree, around: Scope): Scope {
  const scope: Scope = { ...around, items: [], around, ctes: new Map(around.ctes) }
  for (const item of listOf((query.withClause as Tree | undefined)?.ctes)) {
    const { ctename, ctequery, aliascolnames } = nodeOf(item, 'CommonTableExpr')!
    // A recursive one sees itself.
    scope.ctes.set(ctename as string, undefined)
    scope.ctes.set(ctename as string, rename(columnsOf(ctequery, scope), aliascolnames))
  }
  return scope
}

function itemsOf(node: unknown, scope: Scope): Item[] {
  const join = nodeOf(node, 'JoinExpr')
  if (join) return itemsOfJoin(join, scope)
  const table = nodeOf(node, 'RangeVar')
  const subselect = nodeOf(node, 'RangeSubselect')
  const { alias } = table ?? subselect ?? nodeOf(node, 'RangeFunction') ?? {}
  const { aliasname, colnames } = (alias ?? {}) as Tree
  const name = table?.relname as string
  const named = scope.ctes.has(name) ? scope.ctes.get(name) : scope.catalog.tables.get(name)
  const columns = subselect ? columnsOf(subselect.subquery, scope) : named
  return [{ alias: (aliasname ?? name) as string, columns: rename(columns, colnames), outer: new Set() }]
}

function itemsOfJoin({ larg, rarg, jointype, quals }: Tree, scope: Scope): Item[] {
  const left = itemsOf(larg, scope)
  const right = itemsOf(rarg, { ...scope, items: [...scope.items, ...left] })
  const items = [...left, ...right]
  if (jointype === 'JOIN_INNER') excludeNulls(quals, { ...scope, items })
  const optional = { JOIN_LEFT: right, JOIN_RIGHT: left, JOIN_FULL: items }[jointype as string] ?? []
  const join = {}
  if (!(nodeOf(quals, 'A_Const') && isOneRow(nodeOf(rarg, 'RangeSubselect')?.subquery, scope)))
    for (const item of optional) item.outer.add(join)
  return items
}

/** Whether a query is an aggregate without groups. `left join lateral (select count(*) …) on true` finds a row. */
function isOneRow(query: unknown, { catalog }: Scope): boolean {
  const { targetList, groupClause } = nodeOf(query, 'SelectStmt') ?? {}
  const calls = findAll(targetList, 'FuncCall', ['SubLink'])
  return !groupClause && calls.some(call => !call.over && catalog.functions.get(functionOf(call))?.isAggregate)
}

function targetsOf(targets: unknown, scope: Scope, isUngrouped: boolean): Column[] | undefined {
  const columns = listOf(targets).flatMap((item): (Column | undefined)[] => {
    const { name, val } = nodeOf(item, 'ResTarget')!
    const parts = partsOf(nodeOf(val, 'ColumnRef') ?? {})
    if (parts.at(-1) !== '*')
      return [{ name: (name ?? nameOf(val)) as string, isNullable: mayBeNull(val, scope, isUngrouped) }]
    const items = scope.items.filter(({ alias }) => parts.length === 1 || alias === parts[0])
    const withJoins = ({ columns: all, outer }: Item) =>
      all?.map(column => ({ ...column, isNullable: column.isNullable || outer.size > 0 })) ?? [undefined]
    return items.flatMap(withJoins)
  })
  return columns.every(column => column !== undefined) ? columns : undefined
}

/** Whether an expression surely may be null. `isUngrouped`: its query has no GROUP BY, so an aggregate may have no rows. */
function mayBeNull(value: unknown, scope: Scope, isUngrouped: boolean): boolean {
  const isNullable = (part: unknown) => part !== undefined && mayBeNull(part, scope, isUngrouped)
  const [kind, node] = Object.entries(value ?? {})[0] as [string, Tree]
  switch (kind === 'A_Expr' ? node.kind : kind) {
    case 'A_Const':
      return node.isnull === true
    case 'ColumnRef': {
      const { item, column } = find(partsOf(node), scope) ?? {}
      return item !== undefined && (item.outer.size > 0 || column?.isNullable === true)
    }
    case 'TypeCast':
      return isNullable(node.arg)
    case 'CoalesceExpr':
    case 'MinMaxExpr':
      return listOf(node.args).every(isNullable)
    case 'CaseExpr':
      return !node.defresult || [node.defresult, ...listOf(node.args)].some(isNullable)
    case 'CaseWhen':
      return isNullable(node.result)
    case 'AEXPR_NULLIF':
      return true
    case 'AEXPR_OP':
      return [node.lexpr, node.rexpr].some(isNullable)
    case 'FuncCall': {
      const { isAggregate, isStrict } = scope.catalog.functions.get(functionOf(node)) ?? {}
      if (isAggregate) return functionOf(node) !== 'count' && isUngrouped && !node.over
      return isStrict === true && listOf(node.args).some(isNullable)
    }
    case 'SubLink':
      return node.subLinkType === 'EXPR_SUBLINK' && columnsOf(node.subselect, scope)?.[0]?.isNullable === true
    default:
      return false
  }
}

/** Copies columns, with other names if some are given. */
function rename(columns: Column[] | undefined, names: unknown): Column[] | undefined {
  const given = listOf(names).map(name => nodeOf(name, 'String')?.sval as string)
  return columns?.map((column, index) => ({ ...column, name: given[index] ?? column.name }))
}

/** The name that PostgreSQL gives to a result column without `as`. */
function nameOf(value: unknown): string {
  const [column, call, cast] = ['ColumnRef', 'FuncCall', 'TypeCast'].map(kind => nodeOf(value, kind))
  if (column) return partsOf(column).at(-1)!
  return call ? functionOf(call) : cast ? nameOf(cast.arg) : '?column?'
}

/** Finds a column, or the table of a name, in a query or in those around it. */
function find(parts: string[], scope: Scope | undefined): { item: Item; column: Column | undefined } | undefined {
  if (!scope) return undefined
  for (const item of scope.items) {
    const column = item.columns?.find(({ name }) => name === parts.at(-1))
    if (parts.length === 1 ? column : item.alias === parts.at(-2)) return { item, column }
  }
  return find(parts, scope.around)
}

/** Takes into account that a condition is true: a column that it compares, or that is it, is not null. */
function excludeNulls(condition: unknown, scope: Scope): void {
  const parts = nodeOf(condition, 'BoolExpr')
  if (parts?.boolop === 'AND_EXPR') for (const part of listOf(parts.args)) excludeNulls(part, scope)
  const test = nodeOf(condition, 'NullTest')
  const compared = nodeOf(condition, 'A_Expr')
  const isStrict = /^AEXPR_(OP|OP_ANY|IN|LIKE|ILIKE|BETWEEN)$/.test((compared?.kind ?? '') as string)
  const tested = test?.nulltesttype === 'IS_NOT_NULL' ? test.arg : nodeOf(condition, 'ColumnRef') && condition
  for (const value of isStrict ? [compared!.lexpr, compared!.rexpr] : [tested])
    walk(value, (kind, node) => {
      if (kind === 'ColumnRef') excludeNull(partsOf(node), scope)
      return kind === 'TypeCast' || (kind === 'A_Expr' && node.kind === 'AEXPR_OP')
    })
}

function excludeNull(parts: string[], { items, ctes, catalog }: Scope): void {
  const { item, column } = find(parts, { items, ctes, catalog }) ?? {}
  if (column) column.isNullable = false
  // A row of which a column is not null was not left out by a join, nor were those that the same join leaves out.
  for (const join of item?.outer ?? []) for (const { outer } of items) outer.delete(join)
}
