import { isKithError } from '@kith/client'
import { useRef } from 'react'

type Sent = { content: string; key: string; response?: Promise<unknown> | undefined }

/**
 * Returns a function that sends the body of a form with an Idempotency-Key. While no response says what became of the body, the
 * same body has the same key, so pressing *Create* again creates nothing twice. A body that is being sent is not sent again.
 */
export function useSendOnce() {
  const last = useRef<Sent>(undefined)
  return <Result>(body: unknown, send: (idempotencyKey: string) => Promise<Result>): Promise<Result> => {
    const content = JSON.stringify(body) ?? ''
    if (last.current?.content !== content) last.current = { content, key: newKey() }
    const sent = last.current
    sent.response ??= send(sent.key)
      .catch(error => {
        if (isStored(error)) sent.key = newKey()
        throw error
      })
      .finally(() => {
        sent.response = undefined
      })
    return sent.response as Promise<Result>
  }
}

/** Whether the error is a refusal that the service stores under the key. The same body may be accepted later, under another key. */
const isStored = (error: unknown): boolean =>
  isKithError(error) && [400, 404, 409, 412, 422].includes(error.status) && !isStillRunning(error)

const isStillRunning = ({ status, code }: { status: number; code: string }) =>
  status === 409 && code === 'invalid_parameter'

/** 128 random bits. `crypto.randomUUID` is missing on pages without HTTPS. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
