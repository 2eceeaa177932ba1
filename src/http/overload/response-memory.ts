import type { Signal } from '../../signal.ts'

/** Gives the memory back. A second call does nothing. */
export type Release = () => void

/**
 * The memory of a process for responses that are being built or sent. An organization may take more while it holds less
 * than is left free, as with requests (overload.ts). One organization alone takes half, and the next one finds room.
 */
export type ResponseMemory = {
  /** Takes memory now. Returns undefined if the organization has used up its share. */
  take(organization_id: number, bytes: number): Release | undefined
  /** Takes memory when there is room, in order of arrival. Rejects with the signal's reason. */
  wait(organization_id: number, bytes: number, signal: Signal): Promise<Release>
}

type WaitingEntry = { organization_id: number; bytes: number; enter(release: Release): void }

export function createResponseMemory(limitBytes: number): ResponseMemory {
  const heldBy = new Map<number, number>()
  const waiting = new Set<WaitingEntry>()
  let held = 0

  const add = (organization_id: number, bytes: number) => {
    held += bytes
    const left = (heldBy.get(organization_id) ?? 0) + bytes
    if (left > 0) heldBy.set(organization_id, left)
    else heldBy.delete(organization_id)
  }

  const take = (organization_id: number, bytes: number): Release | undefined => {
    if ((heldBy.get(organization_id) ?? 0) >= limitBytes - held) return undefined
    add(organization_id, bytes)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      add(organization_id, -bytes)
      admitWaiting()
    }
  }

  const admitWaiting = () => {
    for (const entry of waiting) {
      const release = take(entry.organization_id, entry.bytes)
      if (!release) continue
      waiting.delete(entry)
      entry.enter(release)
    }
  }

  const isWaiting = (organization_id: number) => [...waiting].some(other => other.organization_id === organization_id)

  const wait = (organization_id: number, bytes: number, signal: Signal) =>
    new Promise<Release>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const release = isWaiting(organization_id) ? undefined : take(organization_id, bytes)
      if (release) return resolve(release)
      const leave = () => {
        waiting.delete(entry)
        reject(signal.reason)
      }
      const enter = (granted: Release) => {
        signal.removeEventListener('abort', leave)
        resolve(granted)
      }
      const entry: WaitingEntry = { organization_id, bytes, enter }
      waiting.add(entry)
      signal.addEventListener('abort', leave, { once: true })
    })

  return { take, wait }
}
