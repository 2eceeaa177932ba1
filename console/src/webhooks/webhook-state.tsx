import type { Webhook } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import { Badge } from '../ui/page.tsx'
import { messages } from './messages.ts'

/** Whether the webhook sends, and why not. */
export function WebhookState({ webhook }: { webhook: Webhook }) {
  const texts = useMessages(messages)
  const { disabled, active, failing_since } = webhook
  if (disabled) return <Badge kind="negative">{disabled.reason === 'gone' ? texts.gone : texts.disabled}</Badge>
  if (!active) return <Badge kind="caution">{texts.pausedState}</Badge>
  return failing_since ? <Badge kind="negative">{texts.failing}</Badge> : <Badge kind="positive">{texts.active}</Badge>
}
