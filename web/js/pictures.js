// Pictures that wait to be sent: chosen, dropped or pasted; thumbnails with a remove button.

const BYTES_MAX = 32 * 1024 * 1024; // the server's limit of one picture (HTTP API 11.3)
const TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

function read_data_url(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

export class PictureTray {
  // `box` shows the thumbnails; complain(text) tells the user why a file is not taken.
  constructor(box, complain) {
    this.box = box;
    this.complain = complain;
    this.pictures = []; // data URLs
  }

  async add(files) {
    for (const file of files) {
      if (!TYPES.includes(file.type)) {
        this.complain(`“${file.name}” cannot be read: PNG, JPEG, WebP and GIF pictures work.`);
      } else if (file.size > BYTES_MAX) {
        this.complain(`“${file.name}” is larger than 32 MB.`);
      } else {
        this.pictures.push(await read_data_url(file));
      }
    }
    this.show();
  }

  take() {
    const pictures = this.pictures;
    this.pictures = [];
    this.show();
    return pictures;
  }

  show() {
    this.box.replaceChildren(...this.pictures.map((url, index) => {
      const image = document.createElement("img");
      image.src = url;
      image.alt = `Picture ${index + 1} to send`;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Remove picture ${index + 1}`);
      remove.onclick = () => {
        this.pictures.splice(index, 1);
        this.show();
      };
      const figure = document.createElement("figure");
      figure.append(image, remove);
      return figure;
    }));
  }
}
