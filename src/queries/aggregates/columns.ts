import type { RelationshipAttribute } from '../grammar/grammar.ts'
import { joinTargets } from '../plan/attribute.ts'
import type { Subject } from '../plan/condition.ts'
import { columnNames, commaSeparated, type Fragment, sql, tableNames } from '../plan/fragment.ts'

/** The rows to read, and their condition. */
export type Source = { from: Fragment; where: Fragment }

/** A column of a level. */
export type Column = { level: number; name: Fragment }

// Without this fence, PostgreSQL would compute an expression at each use. Unlike `offset 0`, it allows a parallel read.
const fence = sql`offset '0'::bigint`

/** A column of the level below. Expressions of every level but the lowest use it. */
const below = (column: Fragment): Fragment => sql`s.${column}`

/**
 * Columns in levels of subqueries. PostgreSQL computes a value once for each row, from the columns of the level below:
 * first the value of the row, then its text, then its type.
 */
export class ColumnLevels {
  readonly #levels: Fragment[][] = []
  readonly #known = new Map<string, Column>()
  /** The joins of the rows and the tables of their targets, by relationship. */
  readonly #joins = new Map<number, { join: Fragment; target: Fragment }>()

  /** Joins the targets of a relationship to the rows, at most once. Returns the name of the joined table. */
  target(relationship: RelationshipAttribute, subject: Subject): Fragment {
    const known = this.#joins.get(relationship.id)
    if (known) return known.target
    const next = 2 * this.#joins.size
    const [link, target] = [tableNames[next]!, tableNames[next + 1]!]
    this.#joins.set(relationship.id, { join: joinTargets(relationship, [link, target], subject), target })
    return target
  }

  /** Adds a value of the row. Values with equal ids become one column. */
  addRaw(id: string, value: () => Fragment): Column {
    return this.#add(0, id, value)
  }

  /** Adds a value that is computed from another column. */
  derive(name: string, from: Column, compute: (column: Fragment) => Fragment): Column {
    return this.#add(from.level + 1, `${name} of ${this.#idOf(from)}`, () => compute(below(from.name)))
  }

  /** Selects the columns of the top level from the rows of `source`. */
  select({ from, where }: Source): Fragment {
    const [lowest = [], ...others] = this.#levels
    const joined = [...this.#joins.values()].reduce((before, { join }) => sql`${before} ${join}`, from)
    const values = lowest.length === 0 ? sql`null` : commaSeparated(lowest)
    const first = sql`select ${values} from ${joined} where ${where} ${fence}`
    return others.reduce((rows, values, index) => {
      const names = commaSeparated(columnNames.slice(0, this.#levels[index]!.length))
      return sql`select ${commaSeparated(values)} from (${rows}) s(${names}) ${fence}`
    }, first)
  }

  /** The names of the columns of the top level. */
  get names(): readonly Fragment[] {
    return columnNames.slice(0, Math.max(1, this.#levels.at(-1)?.length ?? 0))
  }

  /** The name of a column on the top level. */
  atTop(column: Column): Fragment {
    return column.level === this.#levels.length - 1
      ? column.name
      : this.atTop(this.derive('same', column, value => value))
  }

  #add(level: number, id: string, value: () => Fragment): Column {
    const key = `${level} ${id}`
    const known = this.#known.get(key)
    if (known) return known
    while (this.#levels.length <= level) this.#levels.push([])
    const column = { level, name: columnNames[this.#levels[level]!.push(value()) - 1]! }
    this.#known.set(key, column)
    return column
  }

  #idOf(column: Column): string {
    return [...this.#known].find(([, known]) => known === column)![0]
  }
}
