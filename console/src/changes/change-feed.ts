import type { Change } from '@kith/client'
import { useEffect, useState } from 'react'
import { client } from '../app/client.ts'
import type { ChangesSearch } from './search.ts'

export type FeedStatus = 'connecting' | 'live' | 'lost' | 'paused' | 'failed'

/** The page begins with at least `firstChanges` changes, if the log has as many, and keeps at most `maxChanges`. */
const firstChanges = 100
const maxChanges = 2_000
/** The size of the first range of numbers to read back. The changes of one person or record are read at once. */
const windowSize = 500
const pageSize = 1_000

/**
 * Reads the newest matching changes up to the number `until`, in order. If too few match, it looks further back, each
 * time over twice as many numbers. Returns the number `from`, after which all changes are read.
 */
async function readBack(filter: ChangesSearch, until: number, signal?: AbortSignal) {
  let warnings: string[] = []
  const found: Change[] = []
  for (let [end, size] = [until, filter.entity ? until : windowSize]; ; size *= 2) {
    const from = Math.max(0, end - size)
    const items: Change[] = []
    for (let after = from; after < end; ) {
      const options = { ...filter, after, size: pageSize, ...(signal && { signal }) }
      const page = await client.changes.list(options).page()
      items.push(...page.items.filter(({ sequence }) => sequence <= end))
      items.splice(0, items.length - maxChanges)
      warnings = page.warnings?.map(({ message }) => message) ?? []
      after = Math.max(page.last, after + 1)
    }
    found.unshift(...items)
    if (found.length >= firstChanges || from === 0 || warnings.length > 0) return { items: found, from, warnings }
    end = from
  }
}

/** The range of numbers whose changes the page has read, and their filter. */
type Range = { filterKey: string; from: number; until: number }

/**
 * Follows the change log. A pause ends the stream, and the next stream continues after the last change that arrived.
 */
export function useChangeFeed(search: ChangesSearch, isPaused: boolean) {
  /** Newest first. */
  const [changes, setChanges] = useState<Change[]>([])
  const [status, setStatus] = useState<FeedStatus>('connecting')
  const [error, setError] = useState<unknown>()
  /** The service's reasons why the feed shows less than requested. */
  const [warnings, setWarnings] = useState<string[]>([])
  const [range, setRange] = useState<Range | null>(null)
  const filterKey = JSON.stringify(search)
  const reached = range?.filterKey === filterKey ? range : null
  // biome-ignore lint/correctness/useExhaustiveDependencies: the range is where the feed begins, and every change moves it
  useEffect(() => {
    if (isPaused) return setStatus('paused')
    const abort = new AbortController()
    const { signal } = abort
    const filter = JSON.parse(filterKey) as ChangesSearch
    const add = (added: Change[]) => setChanges(before => [...added.toReversed(), ...before].slice(0, maxChanges))
    const follow = async () => {
      let after = reached?.until
      if (after === undefined) {
        setChanges([])
        const { head } = await client.changes.list({ size: 1, signal }).page()
        const read = await readBack(filter, head, signal)
        after = head
        add(read.items)
        setWarnings(read.warnings)
        setRange({ filterKey, from: read.from, until: head })
      }
      setStatus('live')
      const onRetry = () => setStatus('lost')
      for await (const change of client.changes.follow({ ...filter, after, signal, onRetry })) {
        setStatus('live')
        add([change])
        setRange(before => before && { ...before, until: change.sequence })
      }
    }
    setStatus('connecting')
    follow().catch(error => {
      if (signal.aborted) return
      setError(error)
      setStatus('failed')
    })
    return () => abort.abort()
  }, [filterKey, isPaused])
  const showOlder = async () => {
    if (!reached) return
    const { items, from } = await readBack(JSON.parse(reached.filterKey), reached.from)
    setChanges(before => [...before, ...items.toReversed()])
    setRange({ ...reached, from })
  }
  return { changes, status, error, warnings, hasOlder: (reached?.from ?? 0) > 0, showOlder }
}
