import type { Channel } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { isWhole } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { CopyField } from '../ui/copy-field.tsx'
import { Problem } from '../ui/page.tsx'
import { messages } from './messages.ts'

type ConfirmationLinkProps = { personId: string; consent_type_id: number; channel: Channel }

/** The link by which a person confirms a pending answer, to copy. Nothing is shown if the service makes no link. */
export function ConfirmationLink({ personId: id, consent_type_id, channel }: ConfirmationLinkProps) {
  const texts = useMessages(messages)
  const mayMake = useScope('people:write') && isWhole('people')
  const { data, error, refetch } = useQuery({
    queryKey: ['entities', 'people', 'links', id, consent_type_id, channel],
    queryFn: ({ signal }) => client.consents.links({ id }, { consent_type_id, channel }, { signal }),
    enabled: mayMake,
    gcTime: 0,
  })
  if (error) return <Problem error={error} onRetry={() => refetch()} />
  if (data?.confirm_url === undefined) return null
  return (
    <div>
      <CopyField label={texts.confirmationLink} text={data.confirm_url} />
      <p>{texts.confirmationAdvice}</p>
    </div>
  )
}
