/** The maximum number of edits between a name and a suggested one. It is also limited to a third of the characters. */
const maxEdits = 2

/** Only the first refusals of a request compare names, because a hostile body may have 90,000 unknown keys. */
export const maxHints = 3

/**
 * Ends a message about an unknown name with the nearest of the names that the caller may see:
 * `: did you mean "first_name"?`. Empty if none is near enough, or if two are equally near.
 */
export const didYouMean = (name: string, names: Iterable<string>): string => hintOf(nearNames(name, names))

/** The names that are near a name, with `prefix` before them. */
export function nearNames(name: string, names: Iterable<string>, prefix = ''): Near[] {
  const near: Near[] = []
  for (const other of names) {
    const edits = editsBetween(name, other)
    if (edits !== undefined) near.push({ name: prefix + other, edits })
  }
  return near
}

type Near = { name: string; edits: number | undefined }

/**
 * The end of a message with the name that has the fewest edits. Empty if they are too many, or if two names have
 * equally few.
 */
export function hintOf(names: readonly Near[]): string {
  const fewest = names.reduce((few, { edits = few }) => Math.min(few, edits), maxEdits)
  const nearest = names.filter(({ edits }) => edits === fewest)
  return nearest.length === 1 ? `: did you mean ${JSON.stringify(nearest[0]!.name)}?` : ''
}

/**
 * The number of characters to insert, delete, replace or swap with their neighbour between two names (Damerau, optimal
 * string alignment). Undefined if it exceeds {@link maxEdits} or a third of the first name.
 */
export function editsBetween(name: string, other: string): number | undefined {
  const max = Math.min(maxEdits, Math.floor(name.length / 3))
  if (Math.abs(name.length - other.length) > max) return undefined
  const edits = editsFrom(name, 0, other, 0, max)
  return edits <= max ? edits : undefined
}

/**
 * The edits between the rests of both names, if they are at most `left`. The textbook matrix took ten times as long for
 * long, similar names.
 */
function editsFrom(name: string, at: number, other: string, otherAt: number, left: number): number {
  let i = at
  let j = otherAt
  for (; i < name.length && name[i] === other[j]; i += 1) j += 1
  if (i >= name.length && j >= other.length) return 0
  if (left === 0 || Math.abs(name.length - i - other.length + j) > left) return Number.POSITIVE_INFINITY
  const isSwap = i + 1 < name.length && name[i] === other[j + 1] && name[i + 1] === other[j]
  return (
    1 +
    Math.min(
      editsFrom(name, i + 1, other, j, left - 1),
      editsFrom(name, i, other, j + 1, left - 1),
      editsFrom(name, i + 1, other, j + 1, left - 1),
      isSwap ? editsFrom(name, i + 2, other, j + 2, left - 1) : Number.POSITIVE_INFINITY,
    )
  )
}
