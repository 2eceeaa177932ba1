/** A value of a statement: it travels beside the text, under one `$n` however often it is used. */
export class Parameter {
  readonly value: unknown
  constructor(value: unknown) {
    this.value = value
  }
}

/** A piece of SQL: constant texts with holes between them, for values and other pieces. Made by {@link sql} alone. */
export class Fragment {
  readonly texts: readonly string[]
  readonly holes: readonly (Fragment | Parameter)[]
  constructor(texts: readonly string[], holes: readonly (Fragment | Parameter)[]) {
    this.texts = texts
    this.holes = holes
  }
}

/**
 * A fragment from a template literal. What stands between the holes is written in our source; a fragment in a hole
 * becomes part of the text, and anything else becomes a parameter: no value can reach the text.
 */
export function sql(texts: TemplateStringsArray, ...holes: unknown[]): Fragment {
  const filled = holes.map(hole => (hole instanceof Fragment || hole instanceof Parameter ? hole : new Parameter(hole)))
  return new Fragment(texts, filled)
}

export const always = sql`true`
export const never = sql`false`

/** True when every one of them is. */
export function allOf(fragments: readonly Fragment[]): Fragment {
  const real = fragments.filter(fragment => fragment !== always)
  return real.includes(never) ? never : joined(real, sql` and `, always)
}

/** True when one of them is. */
export function anyOf(fragments: readonly Fragment[]): Fragment {
  const real = fragments.filter(fragment => fragment !== never)
  return real.includes(always) ? always : joined(real, sql` or `, never)
}

/** The rows of each, one after the other; undefined where one of them is. */
export function unionAll(selects: readonly (Fragment | undefined)[]): Fragment | undefined {
  const known = selects.filter(select => select !== undefined)
  if (known.length === 0 || known.length < selects.length) return undefined
  return known.reduce((before, next) => sql`${before} union all ${next}`)
}

export function negated(fragment: Fragment): Fragment {
  if (fragment === always) return never
  return fragment === never ? always : sql`not ${fragment}`
}

function joined(fragments: readonly Fragment[], separator: Fragment, none: Fragment): Fragment {
  const [first, ...rest] = fragments
  if (!first || rest.length === 0) return first ?? none
  return sql`(${rest.reduce((before, next) => sql`${before}${separator}${next}`, first)})`
}

/** Text and values, as the driver takes them. `leading` are the parameters that are `$1 …` whether they are used or not. */
export function render(fragment: Fragment, leading: readonly Parameter[] = []): { text: string; values: unknown[] } {
  const numbers = new Map(leading.map((parameter, index) => [parameter, index + 1]))
  const write = (part: Fragment | Parameter): string => {
    if (part instanceof Fragment)
      return part.texts.map((text, index) => (index === 0 ? text : write(part.holes[index - 1]!) + text)).join('')
    if (!numbers.has(part)) numbers.set(part, numbers.size + 1)
    return `$${numbers.get(part)}`
  }
  const text = write(fragment)
  return { text, values: [...numbers.keys()].map(({ value }) => value) }
}
