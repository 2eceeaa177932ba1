import type { Person } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import { MergeNotice } from './merge-notice.tsx'
import { messages } from './messages.ts'

type AliasNoticeProps = { person: Person; alias: string; onShow(person: Person): void }

/** Says that the identifier in the address led to this person. */
export function AliasNotice({ person, alias, onShow }: AliasNoticeProps) {
  const texts = useMessages(messages)
  return (
    <MergeNotice survivorId={person.id} from={{ from: alias }} title={texts.aliasTitle(alias)} onShow={onShow}>
      <p>{texts.aliasAdvice}</p>
    </MergeNotice>
  )
}
