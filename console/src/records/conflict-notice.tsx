import { useFormats, useMessages } from '../app/language.tsx'
import { LongText, Value } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { Notice } from '../ui/notice.tsx'
import { messages } from './messages.ts'
import styles from './records.module.css'

/** The value that somebody else has stored meanwhile. The author and the time are known with the scope `changes:read`. */
export type Conflict = { stored: unknown; version: number; actor?: string; at?: string }

type ConflictNoticeProps = {
  conflict: Conflict
  before: unknown
  /** The text that was typed. */
  mine: string
  isPending: boolean
  onKeepStored: () => void
  onWriteMine: () => void
}

/** Shows both values of a conflict, and lets the person choose. */
export function ConflictNotice({ conflict, before, mine, isPending, onKeepStored, onWriteMine }: ConflictNoticeProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { stored, actor, at } = conflict
  return (
    <Notice kind="error" title={texts.conflict}>
      <p>{actor && at ? texts.changedBy(actor, formats.exactTime(at)) : texts.changedMeanwhile}</p>
      <dl className={styles.choices!}>
        <dt>{texts.valueBefore}</dt>
        <dd>
          <Value value={before} />
        </dd>
        <dt>{texts.valueStored}</dt>
        <dd>
          <Value value={stored} />
        </dd>
        <dt>{texts.valueMine}</dt>
        <dd>
          <LongText text={mine} />
        </dd>
      </dl>
      <div className={styles.actions!}>
        <Button onPress={onKeepStored}>{texts.keepStored}</Button>
        <Button look="primary" onPress={onWriteMine} isPending={isPending}>
          {texts.writeMine}
        </Button>
      </div>
    </Notice>
  )
}
