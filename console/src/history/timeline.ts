/** An event at a moment of RFC 3339. Its key is unique among all sources. */
export type Happened = { key: string; at: string }

/** A list of events, newest first, in pages. */
export type Source<Event extends Happened> = {
  key: string
  read(after: string | undefined, signal: AbortSignal): Promise<{ events: readonly Event[]; next: string | undefined }>
}

/**
 * The events of a source that no page shows yet, and the position of the next read. A source that was read completely
 * has no `next`.
 */
type Rest<Event> = { waiting: readonly Event[]; next: string | undefined; isBegun: boolean }

export type Page<Event> = { events: Event[]; rest: Rest<Event>[] | undefined }

/**
 * Merges the sources into one page of `size`, newest first. `rest` comes from the previous page; a page without it is
 * the last. A source is read again only when all of its events are shown.
 */
export async function readPage<Event extends Happened>(
  sources: readonly Source<Event>[],
  before: Rest<Event>[] | undefined,
  size: number,
  signal: AbortSignal,
): Promise<Page<Event>> {
  let rest = before ?? sources.map(() => ({ waiting: [], next: undefined, isBegun: false }))
  const events: Event[] = []
  while (events.length < size) {
    rest = await Promise.all(rest.map((each, index) => filled(sources[index]!, each, signal)))
    const newest = rest.reduce<Rest<Event> | undefined>((best, each) => (isNewer(each, best) ? each : best), undefined)
    if (!newest) return { events, rest: undefined }
    events.push(newest.waiting[0]!)
    rest = rest.map(each => (each === newest ? { ...each, waiting: each.waiting.slice(1) } : each))
  }
  return { events, rest: rest.some(hasMore) ? rest : undefined }
}

const hasMore = ({ waiting, next, isBegun }: Rest<unknown>) => waiting.length > 0 || next !== undefined || !isBegun

async function filled<Event extends Happened>(source: Source<Event>, rest: Rest<Event>, signal: AbortSignal) {
  if (rest.waiting.length > 0 || !hasMore(rest)) return rest
  const { events, next } = await source.read(rest.next, signal)
  return { waiting: events, next, isBegun: true }
}

function isNewer<Event extends Happened>({ waiting: [first] }: Rest<Event>, best: Rest<Event> | undefined): boolean {
  if (!first) return false
  const current = best?.waiting[0]
  return !current || Date.parse(first.at) > Date.parse(current.at)
}
