import { type DragEvent, type ReactNode, useState } from 'react'
import styles from './field.module.css'

type FileDropProps = {
  /** The endings of the files that can be chosen, separated by commas. */
  accept?: string
  onChoose(file: File): void
  /** The text that names the files to drop. */
  children: ReactNode
}

/** An area where a file is dropped or chosen. */
export function FileDrop({ accept, onChoose, children }: FileDropProps) {
  const [isOver, setOver] = useState(false)
  const take = (files: FileList | null) => files?.[0] && onChoose(files[0])
  const hover = (event: DragEvent) => {
    event.preventDefault()
    setOver(true)
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    take(event.dataTransfer.files)
  }
  return (
    <label
      className={styles.drop}
      data-over={isOver || undefined}
      onDragOver={hover}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      {children}
      <input type="file" accept={accept} onChange={event => take(event.target.files)} />
    </label>
  )
}
