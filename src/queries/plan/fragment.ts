/** A value of a statement, sent apart from the text. It has one `$n` for all its uses. */
export class Parameter {
  readonly value: unknown
  constructor(value: unknown) {
    this.value = value
  }
}

/**
 * A piece of SQL: constant texts with holes between them for values and other fragments. Only {@link sql},
 * {@link constant}, {@link columnFragments}, {@link columnNames} and {@link tableNames} make one.
 */
export class Fragment {
  readonly texts: readonly string[]
  readonly holes: readonly (Fragment | Parameter)[]
  constructor(texts: readonly string[], holes: readonly (Fragment | Parameter)[]) {
    this.texts = texts
    this.holes = holes
  }
}

/**
 * Makes a fragment from a template literal. The texts between the holes are constants of the source code. A fragment in a
 * hole becomes part of the text and everything else becomes a parameter, so no value can reach the text.
 */
export function sql(texts: TemplateStringsArray, ...holes: unknown[]): Fragment {
  const filled = holes.map(hole => (hole instanceof Fragment || hole instanceof Parameter ? hole : new Parameter(hole)))
  return new Fragment(texts, filled)
}

/** Makes a fragment from a constant text of a `sql.ts`. In it, `$1` is the organization. */
export const constant = (text: string): Fragment => new Fragment([text], [])

/** Returns a function for each column, which makes the column of a row. The names are constants of the source code. */
export function columnFragments<Name extends string>(
  names: readonly Name[],
): Readonly<Record<Name, (row: Fragment) => Fragment>> {
  const columns = names.map(name => [name, (row: Fragment) => new Fragment(['', `.${name}`], [row])])
  return Object.fromEntries(columns)
}

const namesFrom = (letter: 'c' | 't') => Array.from({ length: 48 }, (_, n) => new Fragment([`${letter}${n}`], []))
/** Names for the columns of a subquery: c0, c1, c2 … */
export const columnNames: readonly Fragment[] = namesFrom('c')
/** Names for the tables of a query: t0, t1, t2 … */
export const tableNames: readonly Fragment[] = namesFrom('t')

export const always = sql`true`
export const never = sql`false`

/** True if every fragment is true. Without fragments it is true. */
export function allOf(fragments: readonly Fragment[]): Fragment {
  const others = fragments.filter(fragment => fragment !== always)
  return others.includes(never) ? never : join(others, sql` and `, always)
}

/** True if at least one fragment is true. Without fragments it is false. */
export function anyOf(fragments: readonly Fragment[]): Fragment {
  const others = fragments.filter(fragment => fragment !== never)
  return others.includes(always) ? always : join(others, sql` or `, never)
}

/** The rows of all selects. There must be at least one. */
export const unionAll = (selects: readonly Fragment[]): Fragment =>
  selects.reduce((before, next) => sql`${before} union all ${next}`)

/** True if the fragment is false. The fragment must never be null. */
export function negated(fragment: Fragment): Fragment {
  if (fragment === always) return never
  return fragment === never ? always : sql`not ${fragment}`
}

/** The fragments with commas between them. There must be at least one. */
export function commaSeparated([first, ...rest]: readonly Fragment[]): Fragment {
  return rest.reduce((before, next) => sql`${before}, ${next}`, first!)
}

function join(fragments: readonly Fragment[], separator: Fragment, none: Fragment): Fragment {
  const [first, ...rest] = fragments
  if (!first || rest.length === 0) return first ?? none
  return sql`(${rest.reduce((before, next) => sql`${before}${separator}${next}`, first)})`
}

/** A statement for the driver. */
export type Rendered = { text: string; values: unknown[] }

/**
 * Returns text and values for the driver. The parameters in `leading` are `$1`, `$2` and so on, even if they are
 * unused.
 */
export function render(fragment: Fragment, leading: readonly Parameter[] = []): Rendered {
  const numbers = new Map(leading.map((parameter, index) => [parameter, index + 1]))
  let text = ''
  const write = ({ texts, holes }: Fragment) => {
    text += texts[0]
    for (const [index, hole] of holes.entries()) {
      if (hole instanceof Fragment) write(hole)
      else {
        const number = numbers.get(hole) ?? numbers.size + 1
        numbers.set(hole, number)
        text += `$${number}`
      }
      text += texts[index + 1]
    }
  }
  write(fragment)
  return { text, values: [...numbers.keys()].map(({ value }) => value) }
}
