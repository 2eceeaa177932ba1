import type { Change } from '@kith/client'
import { useCallback, useEffect, useState } from 'react'
import { client } from '../app/client.ts'
import type { ChangesSearch } from './search.ts'

export type Feed = {
  /** Newest first. */
  changes: Change[]
  status: 'connecting' | 'live' | 'lost' | 'paused' | 'failed'
  error: unknown
  hasOlder: boolean
  showOlder(): Promise<void>
}

/** The page begins with the changes among this many of the newest numbers, and keeps at most `maxChanges`. */
const windowSize = 500
const maxChanges = 2_000

/** Follows the change log. A pause ends the stream, and it goes on after the last change that arrived. */
export function useChangeFeed({ subject, operation, stack }: ChangesSearch, isPaused: boolean): Feed {
  const [changes, setChanges] = useState<Change[]>([])
  const [status, setStatus] = useState<Feed['status']>('connecting')
  const [error, setError] = useState<unknown>()
  const [range, setRange] = useState<{ from: number; until: number } | null>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter begins anew
  useEffect(() => {
    setChanges([])
    setRange(null)
  }, [subject, operation, stack])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the range is where the feed begins, and every change moves it
  useEffect(() => {
    if (isPaused) return setStatus('paused')
    const abort = new AbortController()
    const { signal } = abort
    const filter = { ...(subject && { subject }), ...(operation && { operation }), ...(stack && { stack }) }
    const add = (added: Change[]) => setChanges(before => [...added.toReversed(), ...before].slice(0, maxChanges))
    const follow = async () => {
      let after = range?.until
      if (after === undefined) {
        const { head } = await client.changes.list({ size: 1, signal }).page()
        const from = Math.max(0, head - windowSize)
        const page = await client.changes.list({ ...filter, after: from, size: windowSize, signal }).page()
        after = Math.max(page.last, from)
        add(page.items)
        setRange({ from, until: after })
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
  }, [subject, operation, stack, isPaused])
  const showOlder = useCallback(async () => {
    if (!range) return
    const from = Math.max(0, range.from - windowSize)
    const filter = { ...(subject && { subject }), ...(operation && { operation }), ...(stack && { stack }) }
    const page = await client.changes.list({ ...filter, after: from, size: windowSize }).page()
    const older = page.items.filter(({ sequence }) => sequence <= range.from)
    setChanges(before => [...before, ...older.toReversed()])
    setRange({ ...range, from })
  }, [range, subject, operation, stack])
  return { changes, status, error, hasOlder: (range?.from ?? 0) > 0, showOlder }
}
