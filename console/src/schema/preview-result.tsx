import { useFormats, useMessages } from '../app/language.tsx'
import { Notice } from '../ui/notice.tsx'
import { messages } from './messages.ts'
import type { RulePreview } from './rule-preview.ts'
import styles from './schema.module.css'
import { ViolationItem } from './violations.tsx'

const maxShown = 20

/** The result of a preview. Undefined means that the session may not read the values. */
export function PreviewResult({ owner, preview }: { owner: string; preview: RulePreview | undefined }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  if (preview === undefined) return <Notice kind="caution" title={texts.previewHidden} />
  const { found, isCut } = preview
  if (found.length === 0) return <Notice kind="success" title={texts.previewFits} />
  const count = formats.number(found.length)
  return (
    <Notice kind="caution" title={texts.previewMisfits(found.length, isCut ? texts.moreThan(count) : count)}>
      <p>{texts.previewMeaning}</p>
      <ul className={styles.found} aria-label={texts.misfits}>
        {found.slice(0, maxShown).map(violation => (
          <ViolationItem key={violation.id ?? violation.record_id} owner={owner} violation={violation} />
        ))}
      </ul>
      {found.length > maxShown && <p>{texts.firstShown(formats.number(maxShown))}</p>}
    </Notice>
  )
}
