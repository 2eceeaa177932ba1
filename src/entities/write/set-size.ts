/** The number of writes that run together, and the total size of their bodies in bytes. */
export type SetSize = { items: number; bytes: number }

/**
 * The maximum size of a portion, which is loaded together. While PostgreSQL stores one portion, Node decides the next.
 * A write of a few bytes may lock a row of 512 KiB.
 */
export const maxPortion: SetSize = { items: 128, bytes: 262_144 }

/**
 * The maximum size of one transaction of an array or an import, whose time is bounded too. Node and PostgreSQL wait for
 * each COMMIT. With half of this size and half of the time, an import wrote a tenth fewer lines per second on an
 * otherwise idle disk, and lost more beside other writers.
 */
export const maxStretch: SetSize = { items: 2_048, bytes: 524_288 }

/** Returns as many of the first items as `max` admits, but at least one. */
export function firstWithin<Item>(items: readonly Item[], bytesOf: (item: Item) => number, max: SetSize): Item[] {
  let bytes = 0
  const end = items.findIndex((item, index) => {
    bytes += bytesOf(item)
    return index === max.items || (index > 0 && bytes > max.bytes)
  })
  return end === -1 ? [...items] : items.slice(0, end)
}
