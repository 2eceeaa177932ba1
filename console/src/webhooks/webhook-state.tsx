import type { Webhook } from '@kith/client'
import { useFormats, useMessages } from '../app/language.tsx'
import { Badge } from '../ui/page.tsx'
import { messages } from './messages.ts'

/** Whether the webhook sends, and why not. */
export function WebhookState({ webhook }: { webhook: Webhook }) {
  const texts = useMessages(messages)
  const { disabled, active, failing_since } = webhook
  if (disabled) return <Badge kind="negative">{disabled.reason === 'gone' ? texts.gone : texts.disabled}</Badge>
  if (!active) return <Badge kind="caution">{texts.paused}</Badge>
  return failing_since ? <Badge kind="negative">{texts.failing}</Badge> : <Badge kind="positive">{texts.active}</Badge>
}

/** The service counts waiting deliveries up to this number. */
const maxCounted = 100_000

/** The number of waiting deliveries, and the time of the oldest. */
export function Backlog({ webhook: { backlog } }: { webhook: Webhook }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const count = formats.number(backlog.deliveries)
  return (
    <>
      {backlog.deliveries < maxCounted ? count : texts.orMore(count)}
      {backlog.oldest_at && <div className="small">{texts.oldest(formats.exactTime(backlog.oldest_at))}</div>}
    </>
  )
}
