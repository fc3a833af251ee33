import { readFileSync } from 'node:fs'
import { defineConfig } from 'vite'
import { svelte } from '@sveltejs/vite-plugin-svelte'

// The licence of the code that the built files contain.
const licences = {
  name: 'licences',
  generateBundle(this: { emitFile(f: object): void }) {
    const text = readFileSync(new URL('./node_modules/svelte/LICENSE.md', import.meta.url), 'utf8')
    this.emitFile({ type: 'asset', fileName: 'licences.txt', source: 'svelte\n\n' + text })
  },
}

export default defineConfig({
  base: '/console/',
  plugins: [svelte({ compilerOptions: { css: 'external' } }), licences],
  build: {
    outDir: '../dist', emptyOutDir: true, target: 'es2022', sourcemap: false,
    modulePreload: { polyfill: false }, assetsInlineLimit: 0, reportCompressedSize: false,
    rollupOptions: { output: {
      entryFileNames: 'assets/[name]-[hash].js', chunkFileNames: 'assets/[name]-[hash].js', assetFileNames: 'assets/[name]-[hash][extname]',
    } },
  },
})
