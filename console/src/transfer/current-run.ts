import { useSyncExternalStore } from 'react'
import type { ImportRun } from './import-run.ts'

// An import continues while the person visits other pages, so it is not part of the page.
let current: ImportRun | null = null
const listeners = new Set<() => void>()

/** Shows another import on the page, or none. */
export function showRun(run: ImportRun | null): void {
  current = run
  for (const listener of listeners) listener()
}

export const useCurrentRun = (): ImportRun | null =>
  useSyncExternalStore(
    listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => current,
  )

window.addEventListener('beforeunload', event => {
  // The browser asks before it leaves a page only if the event is prevented.
  if (current?.isActive) event.preventDefault()
})
