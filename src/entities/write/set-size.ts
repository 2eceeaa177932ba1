/** How many writes run together, and how many bytes their bodies have. */
export type SetSize = { items: number; bytes: number }

/**
 * The writes that are loaded at a time. While PostgreSQL stores what was decided of one portion, Node decides the next. A write of a few bytes
 * may lock a row of 512 KiB.
 */
export const maxPortion: SetSize = { items: 128, bytes: 262_144 }

/**
 * The writes of an array or an import that wait for a transaction of their own, whose time is bounded too. A transaction ends with a COMMIT
 * for which Node and PostgreSQL wait. With half of this, and half of the time, an import had a tenth less lines a second on a disk that
 * nobody else used, and two thirds beside other writers.
 */
export const maxStretch: SetSize = { items: 2_048, bytes: 524_288 }

/** The first items, as many as `max` admits, one at least. */
export function firstWithin<Item>(items: readonly Item[], bytesOf: (item: Item) => number, max: SetSize): Item[] {
  let bytes = 0
  const end = items.findIndex((item, index) => {
    bytes += bytesOf(item)
    return index === max.items || (index > 0 && bytes > max.bytes)
  })
  return end === -1 ? [...items] : items.slice(0, end)
}
